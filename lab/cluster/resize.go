package cluster

import (
	"context"
	"fmt"
	"time"

	"k8slab/config"
	"k8slab/lab/event"
	"k8slab/lab/provision"
	"k8slab/lab/session"
	"k8slab/lab/wait"
)

// Resize gives the node's machine the processors and the memory that cluster.yaml describes, and ends when the node is healthy with them. If
// that takes a restart, it drains a worker before. It begins only when every etcd member is healthy.
func (c *Run) Resize(ctx context.Context, n config.Node) error {
	if err := unsaved(ctx, c.Session, n.Name); err != nil {
		return err
	}
	step := c.Events.Start(n.Name, "resize", 0)
	step.Progress("every etcd member a healthy voter")
	err := wait.For(ctx, "etcd before "+n.Name+" is resized", c.StabilizeBudget(), c.Pace(), session.ShowWaiting(step, c.Admin.Etcd.Healthy))
	restart := false
	if err == nil {
		restart, err = provision.Resize(ctx, c.Session, n)
	}
	began := time.Now()
	switch {
	case err != nil:
	case restart:
		err = c.restartDrained(ctx, n, step)
	default: // kubelet reads only once how much its machine has
		err = session.Do(ctx, c.Nodes[n.Name], "systemctl", "restart", "kubelet")
	}
	if err == nil {
		err = c.ReadyAgain(ctx, n, began, step)
	}
	return step.End(err)
}

func (c *Run) restartDrained(ctx context.Context, n config.Node, step *event.Step) error {
	if err := c.Admin.Kube.Cordon(ctx, n.Name); err != nil {
		return err
	}
	if n.Role == config.Worker {
		if err := c.Admin.Kube.Drain(ctx, n.Name, step.Progress); err != nil {
			return err
		}
	}
	return c.Restart(ctx, n)
}

// ReadyAgain waits until the node's kubelet has reported since that time that it is ready, and etcd is whole. Then pods may come again.
func (c *Run) ReadyAgain(ctx context.Context, n config.Node, since time.Time, step *event.Step) error {
	step.Progress("Ready again, and every etcd member a healthy voter")
	err := wait.For(ctx, n.Name+" to be Ready again", c.StabilizeBudget(), c.Pace(), session.ShowWaiting(step, func(ctx context.Context) error {
		renewed, err := c.Admin.Kube.NodeLeaseRenewed(ctx, n.Name)
		if err != nil {
			return err
		}
		k, err := c.Admin.Kube.Node(ctx, n.Name)
		switch {
		case err != nil:
			return err
		case k == nil || !k.Ready || !renewed.After(since):
			return fmt.Errorf("%s: its kubelet has not reported to be ready since it started again", n.Name)
		}
		return c.Admin.Etcd.Healthy(ctx)
	}))
	if err != nil {
		return fmt.Errorf("%w\nnext: labctl diagnose", err)
	}
	return c.Admin.Kube.Uncordon(ctx, n.Name)
}
