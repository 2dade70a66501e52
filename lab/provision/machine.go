package provision

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"k8slab/config"
	"k8slab/lab/host"
	"k8slab/lab/machine"
	"k8slab/lab/session"
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

// Make gets the machine of one node running and answering over SSH, as `up` does for all nodes. A machine that exists is only started.
func Make(ctx context.Context, s *session.Session, n config.Node) error {
	m := For(s)
	does, err := s.MachineState(ctx, n.Name)
	if err != nil {
		return err
	}
	var boot machine.Boot
	if does == machine.Absent {
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

// MadeByLabctl refuses a machine that vagrant made and still manages.
func MadeByLabctl(ctx context.Context, s *session.Session, name string) error {
	machines, err := s.Machines.List(ctx)
	if slices.ContainsFunc(machines, func(m machine.Machine) bool { return m.Node == name && m.Maker != machine.Labctl }) {
		err = fmt.Errorf("vagrant made the machine of %s; next: vagrant destroy %[1]s, and this again", name)
	}
	return err
}

// Delete deletes the node's machine and its disk, unless vagrant made it. It is no error if the machine does not exist.
func Delete(ctx context.Context, s *session.Session, name string) error {
	if err := MadeByLabctl(ctx, s, name); err != nil {
		return err
	}
	step := s.Events.Start(name, "delete", 0)
	return step.End(s.Machines.Delete(ctx, name))
}

// Resize gives the node's machine the size that cluster.yaml describes: see machine.Lab.
func Resize(ctx context.Context, s *session.Session, n config.Node) (restart bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, powerBudget, fmt.Errorf("no answer for %s", powerBudget))
	defer cancel()
	return s.Machines.Resize(ctx, specOf(s.Lab, s.ID, n, machine.Boot{}))
}

// powerBudget bounds what libvirt does to one machine. It ends a container's processes one by one.
const powerBudget = 30 * time.Second

// Power calls a function of libvirt on the node's machine, with a step and a time limit.
func Power(ctx context.Context, s *session.Session, name string, do func(ctx context.Context, node string) error) error {
	step := s.Events.Start(name, "machine", powerBudget)
	ctx, cancel := context.WithTimeoutCause(ctx, powerBudget, fmt.Errorf("no answer for %s", powerBudget))
	defer cancel()
	return step.End(do(ctx, name))
}

// Resume lets a paused machine go on.
func Resume(ctx context.Context, s *session.Session, name string) error {
	if err := Power(ctx, s, name, s.Machines.Resume); err != nil {
		return err
	}
	n, _ := s.Cluster.Node(name)
	return setClock(ctx, s, n)
}

// setClock sets the clock of a virtual machine, which stood still while the machine was paused. A container uses this computer's clock.
func setClock(ctx context.Context, s *session.Session, n config.Node) error {
	if s.URI == host.Containers {
		return nil
	}
	if err := AwaitSSH(ctx, s, n); err != nil {
		return err
	}
	now := time.Now()
	return session.Do(ctx, s.Nodes[n.Name], "date", "--utc", "--set", fmt.Sprintf("@%d.%09d", now.Unix(), now.Nanosecond()))
}

// Network makes the lab's network, and prepares this computer's kernel for containers.
func Network(ctx context.Context, s *session.Session) error {
	if s.Libvirt == nil { // machines that exist already have a network
		return nil
	}
	if s.URI == host.Containers {
		if err := host.PrepareKernel(ctx, s.ID, s.Events); err != nil {
			return err
		}
		if err := machine.EnsurePartition(session.Partition(s.Lab, s.ID), host.UnifiedControllers); err != nil {
			return err
		}
	}
	hosts := []machine.Host{}
	for _, n := range s.Cluster.Nodes {
		hosts = append(hosts, machine.Host{Name: n.Name, IP: n.IP})
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("no answer for 30s"))
	defer cancel()
	active, err := s.Libvirt.NetworkActive(ctx)
	if err != nil {
		return err
	}
	if !active { // the lab is new: a file that cluster.yaml names may be missing
		_, registries := registryFiles(s.Cluster, netip.Addr{})
		_, proxy := proxyFiles(s.Cluster)
		if err := errors.Join(registries, proxy); err != nil {
			return err
		}
	}
	if s.Host.Own {
		if err := s.Host.EnsureUplink(ctx, session.DaemonDir(s.Lab), host.Uplink{
			ID: s.ID, CIDR: s.Cluster.Network.CIDR, NAT: session.HasUplink(s.Lab), Mutated: s.Told(),
		}); err != nil {
			return err
		}
	}
	if active {
		return nil
	}
	step := s.Events.Start("", "network", 0)
	n := machine.Network{CIDR: s.Cluster.Network.CIDR, Gateway: s.Cluster.Network.Gateway(), Hosts: hosts}
	switch {
	case !session.HasUplink(s.Lab):
	case s.Host.Own: // this computer gives them its address
		n.Forward, n.Resolver = machine.ForwardOpen, host.Resolver
	default:
		n.Forward = machine.ForwardNAT
	}
	return step.End(s.Libvirt.EnsureNetwork(ctx, n))
}
