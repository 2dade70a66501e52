package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var podCIDRNotAssigned = Fault{
	Name:    "pod-cidr-not-assigned",
	Story:   "the controller managers were told to assign no pod networks, and flannel does not start on a node that joins (flannel#728)",
	Roles:   workers,
	Alone:   "kubeadm joins it, and its pods have no network",
	Outside: true,
	Inject:  after(noNodeCIDRs.everywhere, controllerManagersWith("--allocate-node-cidrs=false"), tries(nil)),
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
