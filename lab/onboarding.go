package lab

import (
	"context"
	"errors"

	"k8slab/lab/health"
	"k8slab/lab/join"
	"k8slab/lab/machine"
	"k8slab/lab/metrics"
	"k8slab/lab/provision"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// Admit makes a node with `onboard: true` a member, which `up` and everything else count with from now on. It stays one until Dismiss or Down.
func (l *Lab) Admit(name string) error { return l.found.Admit(name) }

// Dismiss undoes Admit.
func (l *Lab) Dismiss(name string) error { return l.found.Dismiss(name) }

// ID is the UUID of a lab that exists.
func (l *Lab) ID() (string, error) {
	if !l.found.Exists() {
		return "", state.ErrNotUp
	}
	return l.found.ID()
}

// MachineID is the machine-id by which the Node of a node's machine is known.
func (l *Lab) MachineID(name string) (string, error) {
	id, err := l.ID()
	return state.MachineID(id, name), err
}

// Machine is what the node's machine does, and whether the node is admitted. It changes nothing.
func (l *Lab) Machine(ctx context.Context, name string) (does machine.State, admitted bool, err error) {
	if err := l.found.Onboards(name); err != nil {
		return "", false, err
	}
	err = l.with(ctx, access{}, func(s *session.Session) error {
		n, _ := s.Cluster.Node(name)
		admitted = !n.Onboard
		does, err = s.MachineState(ctx, name)
		return err
	})
	return does, admitted, err
}

// MakeMachine admits a node and gets its machine running and answering over SSH, as Up does for all. What is there already is left as it is.
func (l *Lab) MakeMachine(ctx context.Context, name string) error {
	if err := l.found.Onboards(name); err != nil {
		return err
	}
	if !l.found.Exists() {
		return state.ErrNotUp
	}
	admit := func(closed state.Lab) error {
		if n, _ := closed.Cluster.Node(name); !n.Onboard {
			return nil
		}
		// It is made as cluster.yaml describes it now.
		if err := errors.Join(closed.CheckDescribed(), closed.Settle()); err != nil {
			return err
		}
		return closed.Admit(name)
	}
	return l.with(ctx, access{verb: "labctl onboard: machine of " + name, makes: true, prepare: admit}, func(s *session.Session) error {
		n, _ := s.Cluster.Node(name)
		return provision.Make(ctx, s, n)
	})
}

// RemoveMachine removes an onboarded node's machine and its disk, and dismisses the node. A node that is still in the cluster must be taken
// out before: see Reset.
func (l *Lab) RemoveMachine(ctx context.Context, name string) error {
	if err := l.found.Onboards(name); err != nil {
		return err
	}
	return l.with(ctx, access{verb: "labctl onboard: removal of the machine of " + name}, func(s *session.Session) error {
		if err := provision.Delete(ctx, s, name); err != nil {
			return err
		}
		return s.Dismiss(name)
	})
}

// Preflight has the node check what a join needs of its machine, and repair what is safe to repair if fix. It is for a machine that is
// in no cluster yet.
func (l *Lab) Preflight(ctx context.Context, name string, fix bool) ([]join.Check, error) {
	return ask(ctx, l, access{}, func(ctx context.Context, s *session.Session) ([]join.Check, error) {
		return health.Preflight(ctx, s, name, fix)
	})
}

// WriteOnboardingMetrics puts an onboarding's metrics onto the node, where its node_exporter finds them, in place of those of before. The
// node needs to answer over SSH and not to be a member. A caller should take an error for a warning.
func (l *Lab) WriteOnboardingMetrics(ctx context.Context, name string, m *metrics.Set) error {
	n, err := l.Node(name)
	if err != nil {
		return err
	}
	defer n.Close()
	return m.Put(ctx, n, metrics.OnboardingFile)
}
