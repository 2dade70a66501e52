package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var cpPoweredOff = Fault{
	Name:    "cp-powered-off",
	Story:   "the power of a control plane fails; the other two keep the quorum (kubeadm's high availability)",
	Roles:   controlPlane,
	Symptom: symptom.MachineNotRunning,
	Applies: threeControlPlanes,
	Inject: func(ctx context.Context, t Target) error {
		_, err := t.Labctl(ctx, "power", "off", t.Node)
		return err
	},
	Effect:  memberDown,
	Recover: up,
	May:     []Change{Boot},
}
