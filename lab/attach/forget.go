package attach

import (
	"context"

	"k8slab/lab/event"
	"k8slab/lab/kubefile"
	"k8slab/lab/state"
)

// Forget removes what this computer keeps of a cluster that exists, also in a person's kubeconfig. The cluster stays as it is.
func Forget(ctx context.Context, l state.Lab, events *event.Stream) error {
	step := events.Start("", "down", 0)
	if err := kubefile.Remove(ctx, l); err != nil {
		return step.End(err)
	}
	did, err := l.Detach()
	if err != nil {
		return step.End(err)
	}
	step.EndWith(did)
	return nil
}
