package provision

import (
	"context"
	"fmt"
	"k8slab/config"
	"k8slab/lab/host"
	"k8slab/lab/session"
	"time"
)

// powerBudget bounds what libvirt does to one machine; a container's processes are ended one by one.
const powerBudget = 30 * time.Second

// Power does something to the node's machine.
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

// setClock sets the clock of a virtual machine, which stood still while the machine was paused. A container has this computer's.
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
