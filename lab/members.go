package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"k8slab/config"
	"k8slab/lab/machine"
)

// membersDir has an empty file for each node with `onboard: true` that is a member nevertheless, because it was onboarded or is being so.
const membersDir = "members"

// admitted are the names of the nodes that were admitted.
func (s state) admitted() ([]string, error) {
	entries, err := os.ReadDir(s.path(membersDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, unreadable(s.dir, err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// Admit makes a node with `onboard: true` a member, which `up` and everything else count with from now on. It stays one until Dismiss or Down.
func (l *Lab) Admit(name string) error {
	if err := l.onboards(name); err != nil {
		return err
	}
	if err := l.state.write(filepath.Join(membersDir, name), nil); err != nil {
		return fmt.Errorf("admit %s: %w", name, err)
	}
	return l.recount()
}

// Dismiss undoes Admit.
func (l *Lab) Dismiss(name string) error {
	if err := l.onboards(name); err != nil {
		return err
	}
	if err := os.Remove(l.state.path(membersDir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("dismiss %s: %w", name, err)
	}
	return l.recount()
}

// onboards is an error for a node that needs no admission.
func (l *Lab) onboards(name string) error {
	if n, ok := l.described.Node(name); !ok || !n.Onboard {
		return fmt.Errorf("cluster.yaml has no node %q with onboard: true", name)
	}
	return nil
}

// recount makes the lab's cluster that which its state says.
func (l *Lab) recount() (err error) {
	l.cluster, l.differences, err = AsMade(l.described)
	return err
}

// ID is the UUID of a lab that exists.
func (l *Lab) ID() (string, error) {
	if !l.state.exists() {
		return "", ErrNotUp
	}
	return l.state.id()
}

// OnboardingDir is where the states of the lab's onboardings are.
func (l *Lab) OnboardingDir() string { return l.state.path("onboard") }

// Machine is what the node's machine does, and whether the node is admitted. It changes nothing.
func (l *Lab) Machine(ctx context.Context, name string) (state machine.State, admitted bool, err error) {
	if err := l.onboards(name); err != nil {
		return "", false, err
	}
	if err := l.open(); err != nil {
		return "", false, err
	}
	n, _ := l.cluster.Node(name)
	ctx, cancel := context.WithTimeoutCause(ctx, daemonBudget, errDaemonSilent)
	defer cancel()
	state, err = l.machines.State(ctx, name)
	return state, !n.Onboard, err
}

// MakeMachine admits a node and gets its machine running and answering over SSH, as Up does for all. What is there already is left as it is.
func (l *Lab) MakeMachine(ctx context.Context, name string) error {
	return l.onMachine(name, "machine of "+name, func() error {
		if n, _ := l.cluster.Node(name); n.Onboard { // not admitted yet: it is made as cluster.yaml describes it now
			if err := errors.Join(l.CheckDescribed(), l.settle()); err != nil {
				return err
			}
		}
		if err := l.Admit(name); err != nil {
			return err
		}
		if err := l.connectHost(ctx); err != nil {
			return err
		}
		n, _ := l.cluster.Node(name)
		missing, err := l.absentMachines(ctx)
		if err != nil {
			return err
		}
		var boot machine.Boot
		if slices.Contains(missing, n) {
			if err = l.warnSize([]config.Node{n}); err != nil {
				return err
			}
			if boot, err = l.image(ctx); err != nil {
				return err
			}
		}
		if err := l.settle(n); err != nil {
			return err
		}
		if err := l.network(ctx); err != nil {
			return err
		}
		return l.boot(ctx, []config.Node{n}, boot)
	})
}

// RemoveMachine removes an onboarded node's machine and its disk, and dismisses the node. A node that is still in the cluster must be taken
// out before: see Reset.
func (l *Lab) RemoveMachine(ctx context.Context, name string) error {
	return l.onMachine(name, "removal of the machine of "+name, func() error {
		if err := l.open(); err != nil {
			return err
		}
		if err := l.deleteMachine(ctx, name); err != nil {
			return err
		}
		return l.Dismiss(name)
	})
}

// madeByLabctl refuses a machine that vagrant made and believes to have.
func (l *Lab) madeByLabctl(ctx context.Context, name string) error {
	machines, err := l.machines.List(ctx)
	if slices.ContainsFunc(machines, func(m machine.Machine) bool { return m.Node == name && m.Maker != machine.Labctl }) {
		err = fmt.Errorf("vagrant made the machine of %s; next: vagrant destroy %[1]s, and this again", name)
	}
	return err
}

// deleteMachine deletes the machine of a node, with its disk, unless vagrant made it. One that is gone is no error.
func (l *Lab) deleteMachine(ctx context.Context, name string) error {
	if err := l.madeByLabctl(ctx, name); err != nil {
		return err
	}
	step := l.events.Start(name, "delete", 0)
	return step.End(l.machines.Delete(ctx, name))
}

// onMachine does something to the machine of a node that is onboarded, under the lab's lock.
func (l *Lab) onMachine(name, what string, do func() error) error {
	if err := l.onboards(name); err != nil {
		return err
	}
	if !l.state.exists() {
		return ErrNotUp
	}
	release, err := lock(l.cluster.Name, "labctl onboard: "+what)
	if err != nil {
		return err
	}
	defer release()
	return do()
}

// MachineID is the machine-id by which the Node of a node's machine is known.
func (l *Lab) MachineID(name string) (string, error) {
	id, err := l.ID()
	return machineID(id, name), err
}
