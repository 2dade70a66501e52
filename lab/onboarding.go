package lab

import (
	"context"
	"errors"
	"strings"

	"k8slab/lab/health"
	"k8slab/lab/join"
	"k8slab/lab/machine"
	"k8slab/lab/metrics"
	"k8slab/lab/provision"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// Admit makes a node with `onboard: true` a member: see state.Lab.
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

// MachineID is the machine-id of the node's machine, by which its Node is recognised.
func (l *Lab) MachineID(ctx context.Context, name string) (string, error) {
	if l.described.OverSSH() {
		return ask(ctx, l, access{}, func(ctx context.Context, s *session.Session) (string, error) {
			id, err := s.Nodes[name].Read(ctx, "cat", "/etc/machine-id")
			return strings.TrimSpace(id), err
		})
	}
	id, err := l.ID()
	return state.MachineID(id, name), err
}

// Machine is what the node's machine does, and whether the node is admitted. One that labctl did not make is there, and always is.
func (l *Lab) Machine(ctx context.Context, name string) (does machine.State, admitted bool, err error) {
	if l.described.OverSSH() {
		return machine.Running, true, nil
	}
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

// MakeMachine admits a node and gets its machine running and answering over SSH. An existing machine is only started.
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
		// The machine is made as cluster.yaml describes it now.
		if err := errors.Join(closed.CheckDescribed(false), closed.Settle()); err != nil {
			return err
		}
		return closed.Admit(name)
	}
	return l.with(ctx, access{verb: "labctl onboard: machine of " + name, makes: true, prepare: admit}, func(s *session.Session) error {
		n, _ := s.Cluster.Node(name)
		return provision.Make(ctx, s, n)
	})
}

// RemoveMachine deletes an onboarded node's machine and its disk, and dismisses the node. It must have left the cluster before: see Reset.
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

// Preflight has the node check what a join needs of its machine: see health.Preflight.
func (l *Lab) Preflight(ctx context.Context, name string, fix bool) ([]join.Check, error) {
	return ask(ctx, l, access{}, func(ctx context.Context, s *session.Session) ([]join.Check, error) {
		return health.Preflight(ctx, s, name, fix)
	})
}

// WriteOnboardingMetrics replaces the metrics of an onboarding on the node, where its node_exporter finds them. The node must answer over
// SSH, but need not be a member. A caller should treat an error as a warning.
func (l *Lab) WriteOnboardingMetrics(ctx context.Context, name string, m *metrics.Set) error {
	n, err := l.Node(name)
	if err != nil {
		return err
	}
	defer n.Close()
	return m.Put(ctx, n, metrics.OnboardingFile)
}
