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
	Bites:   kubeletSilent,
	Recover: up,
	May:     []Change{Boot},
}

// power does something to the node's machine, as a person in front of it would.
func power(what string) func(context.Context, Site) error {
	return func(ctx context.Context, s Site) error {
		_, err := s.Labctl(ctx, "power", what, s.Node)
		return err
	}
}
