// Package provision makes and removes the lab's machines, and what they need: the computer's programs, libvirt, the image, the network, the
// files of each node. It ends where a machine answers over SSH with all programs of a node.
package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8slab/config"
	"k8slab/lab/machine"
	"k8slab/lab/node"
	"k8slab/lab/session"
	"k8slab/lab/state"
	"k8slab/lab/wait"
)

// machineBudget bounds boot to SSH. A single emulated virtual machine takes 13 s; several share two processors.
const machineBudget = 4 * time.Minute

// Boot starts all the machines at once, waits until they answer over SSH, and installs a node's programs on those with a stock image.
func (m *Maker) Boot(ctx context.Context, nodes []config.Node, boot machine.Boot) error {
	s := m.Session
	return session.ForEachNode(nodes, func(n config.Node) error {
		step := s.Events.Start(n.Name, "machine", bootBudget(s))
		state, err := s.Machines.State(ctx, n.Name)
		if err != nil {
			return step.End(err)
		}
		spec := specOf(s.Lab, s.ID, n, boot)
		if state != machine.Running {
			if spec.Seed, err = seedOf(s, n); err != nil {
				return step.End(err)
			}
		}
		if err := s.Machines.Ensure(ctx, spec); err != nil {
			return step.End(err)
		}
		step.Progress("waiting for SSH")
		err = withConsole(s, n, AwaitSSH(ctx, s, n))
		if err != nil && state == machine.Running { // it was on before, so no start is to blame
			err = fmt.Errorf("%w\nnext: labctl power off %s; labctl up", err, n.Name)
		}
		if err == nil && state == machine.Paused {
			err = setClock(ctx, s, n)
		}
		if err := step.End(err); err != nil {
			return err
		}
		if err := m.provision(ctx, n); err != nil || state == machine.Absent || n.Role != config.ControlPlane {
			return err
		}
		return knowPeers(ctx, s, n)
	})
}

// bootBudget bounds boot to SSH.
func bootBudget(s *session.Session) time.Duration {
	if s.Cluster.Image.Base != "" {
		return stockBudget
	}
	return machineBudget
}

// specOf describes the node's machine.
func specOf(l state.Lab, id string, n config.Node, boot machine.Boot) machine.Spec {
	r := l.Cluster.Resource(n.Role)
	return machine.Spec{
		Node: n.Name, MachineID: state.MachineID(id, n.Name), CPUs: r.CPUs, Memory: r.Memory, Disk: r.Disk, Disks: l.Cluster.OptionsOf(n).Disks, Boot: boot,
	}
}

// seedOf writes the node's own files, or cloud-init's configuration of them, for a machine that is about to start. It returns their
// directory.
func seedOf(s *session.Session, n config.Node) (string, error) {
	var files map[string]seedFile
	var err error
	if s.Cluster.Image.Base != "" {
		files, err = cloudFiles(s, n)
	} else {
		files, err = seedFiles(s, n, fixedAddress(s, n))
	}
	if err != nil {
		return "", err
	}
	return writeSeed(s, n, files)
}

// AwaitSSH waits until the node answers over SSH. It fails at once when the machine has ended.
func AwaitSSH(ctx context.Context, s *session.Session, n config.Node) error {
	return wait.For(ctx, n.Name+" to answer over SSH", bootBudget(s), 100*time.Millisecond, func(ctx context.Context) error {
		_, err := s.Nodes[n.Name].Read(ctx, "true")
		var connect *node.ConnectError
		if errors.As(err, &connect) && connect.Permanent {
			return wait.Hopeless(err)
		}
		if err == nil {
			return nil
		}
		state, stateErr := s.Machines.State(ctx, n.Name)
		if stateErr == nil && state != machine.Running {
			return wait.Hopeless(fmt.Errorf("%s: its machine is %s: it ended while starting; see `labctl host exec -- virsh -c %s console %s-%s` and its log in %s",
				n.Name, state, s.URI, s.Cluster.Name, n.Name, s.Path("libvirt", "log")))
		}
		return err
	})
}
