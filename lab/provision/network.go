package provision

import (
	"context"
	"errors"
	"k8slab/lab/host"
	"k8slab/lab/machine"
	"k8slab/lab/session"
	"time"
)

// Network gets the lab's network, and what the computer's kernel needs for its machines.
func Network(ctx context.Context, s *session.Session) error {
	if s.Libvirt == nil { // their machines have one already
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
	if err != nil || active {
		return err
	}
	step := s.Events.Start("", "network", 0)
	return step.End(s.Libvirt.EnsureNetwork(ctx, machine.Network{
		CIDR: s.Cluster.Network.CIDR, Gateway: s.Cluster.Network.Gateway(), Hosts: hosts,
	}))
}
