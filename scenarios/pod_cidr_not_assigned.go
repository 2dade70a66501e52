package scenarios

import (
	"context"
	"time"

	"k8slab/lab/symptom"
)

var podCIDRNotAssigned = Fault{
	Name:    "pod-cidr-not-assigned",
	Story:   "the controller managers were told to assign no pod networks, and flannel does not start on a node that joins (flannel#728)",
	Roles:   workers,
	Alone:   "kubeadm joins it, and its pods have no network",
	Outside: true,
	Inject:  after(noNodeCIDRs.everywhere, controllerManagersAnew, tries(nil)),
	Effect: func(ctx context.Context, t Target) error {
		given, err := t.nodeField(ctx, t.Node, "{.spec.podCIDR}")
		if err != nil {
			return err
		}
		if given != "" {
			return absent("%s has the pod network %s", t.Node, given)
		}
		return podFails("kube-flannel", flannelPods)(ctx, t)
	},
	Symptom: symptom.PodCIDRNotAssigned,
	Recover: repair,
	May:     []Change{Others},
	Restore: noNodeCIDRs.undoEverywhere,
}

var noNodeCIDRs = edit{
	path: controllerManagerGone.path,
	how:  `sed --in-place 's/--allocate-node-cidrs=true/--allocate-node-cidrs=false/' "$1"`,
}

// controllerManagersAnew waits until no controller manager runs with its old flags: the one that leads would still assign networks.
func controllerManagersAnew(ctx context.Context, t Target) error {
	for _, m := range t.controlPlanes() {
		err := t.await(ctx, "the controller manager of "+m.Name+" to start anew", 2*time.Minute, time.Second, func(ctx context.Context) error {
			return t.shell(ctx, m.Name, `pgrep --full -- '--allocate-node-cidrs=[f]alse' && ! pgrep --full -- '--allocate-node-cidrs=[t]rue'`)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
