package provision

import (
	"context"
	"fmt"
	"k8slab/config"
	"k8slab/lab/machine"
	"k8slab/lab/session"
	"slices"
)

// Absent are the members without a machine.
func Absent(ctx context.Context, s *session.Session) ([]config.Node, error) {
	var absent []config.Node
	for _, n := range s.Cluster.Members() {
		state, err := s.MachineState(ctx, n.Name)
		if err != nil {
			return nil, err
		}
		if state == machine.Absent {
			absent = append(absent, n)
		}
	}
	return absent, nil
}

// Make gets the machine of one node running and answering over SSH, as `up` does for all. What is there already is left as it is.
func Make(ctx context.Context, s *session.Session, n config.Node) error {
	m := For(s)
	missing, err := Absent(ctx, s)
	if err != nil {
		return err
	}
	var boot machine.Boot
	if slices.Contains(missing, n) {
		if err = WarnSize(s.Lab, s.Events, []config.Node{n}); err != nil {
			return err
		}
		if boot, err = m.Image(ctx); err != nil {
			return err
		}
	}
	if err := s.Settle(n); err != nil {
		return err
	}
	if err := Network(ctx, s); err != nil {
		return err
	}
	return m.Boot(ctx, []config.Node{n}, boot)
}

// MadeByLabctl refuses a machine that vagrant made and believes to have.
func MadeByLabctl(ctx context.Context, s *session.Session, name string) error {
	machines, err := s.Machines.List(ctx)
	if slices.ContainsFunc(machines, func(m machine.Machine) bool { return m.Node == name && m.Maker != machine.Labctl }) {
		err = fmt.Errorf("vagrant made the machine of %s; next: vagrant destroy %[1]s, and this again", name)
	}
	return err
}

// Delete deletes the machine of a node, with its disk, unless vagrant made it. One that is gone is no error.
func Delete(ctx context.Context, s *session.Session, name string) error {
	if err := MadeByLabctl(ctx, s, name); err != nil {
		return err
	}
	step := s.Events.Start(name, "delete", 0)
	return step.End(s.Machines.Delete(ctx, name))
}
