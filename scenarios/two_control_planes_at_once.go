package scenarios

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8slab/config"
	"k8slab/lab/symptom"
	"k8slab/lab/wait"
)

var twoControlPlanesAtOnce = Fault{
	Name:    "two-control-planes-at-once",
	Story:   "two control planes join at the same time, and etcd takes one learner (control-plane-join-failures, CAPI#2050)",
	Roles:   controlPlane,
	Alone:   "kubeadm joins both, after 30 s",
	Applies: threeControlPlanes,
	Outside: true,
	Inject: func(ctx context.Context, t Target) error {
		other := t.otherControlPlane()
		if _, err := t.Labctl(ctx, "reset", other); err != nil {
			return err
		}
		command, err := t.joinCommand(ctx)
		if err != nil {
			return err
		}
		defer t.forgetToken(context.WithoutCancel(ctx), command)
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for i, node := range []string{t.Node, other} {
			wg.Go(func() {
				var own string
				if own, errs[i] = t.named(ctx, node, command); errs[i] == nil {
					_, errs[i] = t.joinWith(ctx, node, own)
				}
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	},
	// One has joined, and the other was refused because of the first one's learner.
	Effect: func(ctx context.Context, t Target) error {
		one, err := t.lastJoin(ctx, t.Node)
		if err != nil {
			return err
		}
		other, err := t.lastJoin(ctx, t.otherControlPlane())
		if err != nil {
			return err
		}
		refused := one
		if one.Joined {
			refused = other
		}
		switch {
		case one.Joined == other.Joined:
			return wait.Hopeless(fmt.Errorf("joined: %t and %t; %s; %s", one.Joined, other.Joined, one.Evidence, other.Evidence))
		case refused.Symptom != symptom.EtcdTooManyLearners:
			return wait.Hopeless(&misnamedError{refused, symptom.EtcdTooManyLearners})
		}
		return nil
	},
	Symptom: symptom.LeftoverState,
	Of:      func(t Target) []string { return []string{t.Node, t.otherControlPlane()} }, // whichever was refused
	Recover: repair,
	May:     []Change{Others},
}

// otherControlPlane is neither the node nor the healthy control plane that the checks use.
func (t Target) otherControlPlane() string {
	for _, m := range t.Members {
		if m.Role == config.ControlPlane && m.Name != t.Node && m.Name != t.ControlPlane {
			return m.Name
		}
	}
	return ""
}
