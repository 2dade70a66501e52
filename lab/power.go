package lab

import (
	"context"
	"fmt"
	"time"

	"k8slab/config"
	"k8slab/lab/host"
	"k8slab/lab/machine"
)

// powerBudget bounds what libvirt does to one machine; a container's processes are ended one by one.
const powerBudget = 30 * time.Second

// PowerOff pulls the plug of the node's machine. `labctl up` starts it again.
func (l *Lab) PowerOff(ctx context.Context, name string) error {
	return l.power(ctx, name, "labctl power off", (*machine.Lab).PowerOff)
}

// Pause stops the processors of the node's machine; its memory and its connections stay.
func (l *Lab) Pause(ctx context.Context, name string) error {
	return l.power(ctx, name, "labctl power pause", (*machine.Lab).Suspend)
}

// Resume undoes Pause.
func (l *Lab) Resume(ctx context.Context, name string) error {
	if err := l.power(ctx, name, "labctl power resume", (*machine.Lab).Resume); err != nil {
		return err
	}
	n, _ := l.cluster.Node(name)
	return l.setClock(ctx, n)
}

// setClock sets the clock of a virtual machine, which stood still while the machine was paused. A container has this computer's.
func (l *Lab) setClock(ctx context.Context, n config.Node) error {
	if l.uri == host.Containers {
		return nil
	}
	if err := l.awaitSSH(ctx, n); err != nil {
		return err
	}
	now := time.Now()
	return runOn(ctx, l.nodes[n.Name], "date", "--utc", "--set", fmt.Sprintf("@%d.%09d", now.Unix(), now.Nanosecond()))
}

func (l *Lab) power(ctx context.Context, name, command string, do func(*machine.Lab, context.Context, string) error) error {
	release, err := lock(l.cluster.Name, command)
	if err != nil {
		return err
	}
	defer release()
	if err := l.open(); err != nil {
		return err
	}
	if _, err := l.member(name); err != nil {
		return err
	}
	step := l.events.Start(name, "machine", powerBudget)
	ctx, cancel := context.WithTimeoutCause(ctx, powerBudget, fmt.Errorf("no answer for %s", powerBudget))
	defer cancel()
	return step.End(do(l.machines, ctx, name))
}
