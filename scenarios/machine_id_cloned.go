package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var machineIDCloned = Fault{
	Name:    "machine-id-cloned",
	Story:   "the machine is a clone and has another one's machine-id, which nobody can tell from it any more (kubeadm#31)",
	Roles:   everyRole,
	Symptom: symptom.DuplicateMachineIdentity,
	Applies: anotherControlPlane,
	Lab:     theStart,
	Of:      func(t Target) []string { return []string{t.Node, t.ControlPlane} }, // either could be the copy
	Inject: func(ctx context.Context, t Target) error {
		id, err := t.Run(ctx, t.ControlPlane, "cat", machineID.path)
		if err != nil {
			return err
		}
		return machineID.on(ctx, t, t.Node, id)
	},
	Effect: func(ctx context.Context, t Target) error {
		own, err := t.nodeField(ctx, t.Node, "{.status.nodeInfo.machineID}")
		if err != nil {
			return err
		}
		other, err := t.nodeField(ctx, t.ControlPlane, "{.status.nodeInfo.machineID}")
		if err == nil && own != other {
			err = absent("%s and %s have the machine-ids %s and %s", t.Node, t.ControlPlane, own, other)
		}
		return err
	},
	Recover: repair,
	May:     []Change{Boot}, // a machine that starts anew has its own machine-id again
	Restore: machineID.undo,
}

var machineID = edit{path: "/etc/machine-id", how: writeValue, then: restartKubelet}
