package lab

import (
	"context"
	"fmt"

	"k8slab/lab/cluster"
	"k8slab/lab/session"
)

// Dismantle takes a cluster of machines that exist apart. The attachment stays.
func (l *Lab) Dismantle(ctx context.Context) error {
	if !l.described.OverSSH() {
		return fmt.Errorf("%s is a lab, whose machines go with its cluster; next: labctl down", l.Name())
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
		l.allowChanges(ctx) // the Lease ends with the cluster
		return d.Dismantle(ctx)
	})
}
