package lab

import (
	"context"
	"fmt"

	"k8slab/lab/bringup"
	"k8slab/lab/cluster"
	"k8slab/lab/health"
	"k8slab/lab/session"
)

// Form forms a cluster of machines that exist: see bringup.Form. A cluster that all of them are in it proves healthy, and changes nothing.
func (l *Lab) Form(ctx context.Context, network bringup.PodNetwork) error {
	steps, err := l.FormSteps(ctx, network)
	if err != nil {
		return err
	}
	if len(steps) == 0 {
		return l.with(ctx, access{}, func(s *session.Session) error { return health.Verify(ctx, s) })
	}
	return l.with(ctx, access{verb: "labctl up", steps: steps}, func(s *session.Session) error { return bringup.Form(ctx, s, network) })
}

// FormSteps says what Form would do; nothing where it would only verify.
func (l *Lab) FormSteps(ctx context.Context, network bringup.PodNetwork) ([]string, error) {
	f, err := ask(ctx, l, access{}, func(ctx context.Context, s *session.Session) (*bringup.Forming, error) {
		return bringup.NewForming(ctx, s, network)
	})
	if err != nil {
		return nil, err
	}
	return f.Steps, nil
}

// Dismantle takes a cluster of machines that exist apart. The attachment stays.
func (l *Lab) Dismantle(ctx context.Context) error {
	if !l.described.OverSSH() {
		return fmt.Errorf("%s is a lab, whose machines go with its cluster; next: `labctl down`", l.Name())
	}
	found, err := ask(ctx, l, access{}, cluster.NewDismantling)
	if err != nil {
		return err
	}
	if len(found.Steps) == 0 {
		l.events.Start("", "dismantle", 0).EndWith("nothing to take apart: no machine is in a cluster")
		return nil
	}
	return l.with(ctx, access{verb: "labctl dismantle", steps: found.Steps, ends: true}, func(s *session.Session) error {
		d, err := cluster.NewDismantling(ctx, s)
		if err != nil {
			return err
		}
		return d.Dismantle(ctx)
	})
}
