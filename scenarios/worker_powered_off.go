package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var workerPoweredOff = Fault{
	Name:    "worker-powered-off",
	Story:   "somebody pulled the plug of a worker",
	Roles:   workers,
	Symptom: symptom.MachineNotRunning,
	Inject:  power("off"),
	Effect:  kubeletSilent,
	Recover: up,
	May:     []Change{Boot},
}

// power runs `labctl power` for the node.
func power(what string) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		_, err := t.Labctl(ctx, "power", what, t.Node)
		return err
	}
}
