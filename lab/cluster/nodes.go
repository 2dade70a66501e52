package cluster

import (
	"context"
	"errors"
	"fmt"

	"k8slab/config"
	"k8slab/lab/host"
	"k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/provision"
	"k8slab/lab/session"
)

// Open finds the cluster that the lab's nodes are. Nodes that do not answer are left out of the facts. The caller has the lab's lock.
func Open(ctx context.Context, s *session.Session, images ImageImport) (*Run, error) {
	facts, silent := s.Facts(ctx, s.Cluster.Members())
	c := New(s, facts, images)
	joined := c.JoinedControlPlanes()
	if len(joined) == 0 {
		return nil, errors.Join(errors.New("no control plane that has joined answers; next: labctl up"), silent)
	}
	var err error
	if c.Admin, err = s.OpenAdmin(ctx, joined[0], joined); err != nil {
		return nil, err
	}
	return c, nil
}

// ready waits for a kubeadm that is at work on the node, which must answer.
func (c *Run) ready(ctx context.Context, n config.Node) error {
	if !c.Answers(n.Name) {
		state, err := c.Machines.State(ctx, n.Name)
		return errors.Join(fmt.Errorf("%s: it does not answer over SSH; its machine is %s; next: labctl up", n.Name, state), err)
	}
	return c.Finish(ctx, n)
}

// Join gets one node into the cluster. A healthy member is left as it is; one that is not healthy is an error that says why.
func (c *Run) Join(ctx context.Context, n config.Node) error {
	if err := c.ready(ctx, n); err != nil {
		return err
	}
	nodes, err := c.Admin.Kube.Nodes(ctx)
	if err != nil {
		return err
	}
	if !c.IsMember(n, nodes) {
		return c.joinOne(ctx, n)
	}
	step := c.Events.Start(n.Name, "validate", 0)
	if bad := session.FirstBad(c.Validate(ctx, n.Name)); bad != nil {
		return step.End(fmt.Errorf("%s: it is a member that is not healthy: %s: %s\nnext: labctl repair, or labctl rejoin %s", n.Name, bad.ID, bad.Evidence, n.Name))
	}
	step.EndWith("already a healthy member")
	return nil
}

// Rejoin resets the node, whatever it is, and joins it again.
func (c *Run) Rejoin(ctx context.Context, n config.Node) error {
	if err := c.ready(ctx, n); err != nil {
		return err
	}
	return c.joinOne(ctx, n)
}

// Reset takes the node out of the cluster: its etcd member, what kubeadm did on the machine, its Node, and the pods that ran there, in
// this order.
func (c *Run) Reset(ctx context.Context, n config.Node) error {
	if err := c.ready(ctx, n); err != nil {
		return err
	}
	return c.takeOut(ctx, n, (*nodeJoin).clear)
}

// Remove takes the node out of the cluster as Reset does, deletes its machine and its disk, and forgets that it was there. Of a machine that
// does not answer nothing is undone.
func (c *Run) Remove(ctx context.Context, n config.Node) error {
	if err := removable(ctx, c.Session, n.Name); err != nil {
		return err
	}
	if c.Answers(n.Name) {
		if err := c.Reset(ctx, n); err != nil {
			return err
		}
		if err := c.Retire(ctx); err != nil { // the way to the cluster may lead through this machine
			return err
		}
		c.retired = true
		if err := provision.Delete(ctx, c.Session, n.Name); err != nil {
			return err
		}
	} else if err := c.takeOut(ctx, n, (*nodeJoin).clearSilent); err != nil {
		return err
	}
	return c.Forget(n.Name)
}

// removable refuses to remove a node before anything is done to it.
func removable(ctx context.Context, s *session.Session, name string) error {
	if err := provision.MadeByLabctl(ctx, s, name); err != nil {
		return err
	}
	if s.URI != host.VirtualMachines {
		return nil
	}
	snapshots, err := provision.Snapshots(ctx, s)
	if err == nil && len(snapshots) > 0 {
		err = fmt.Errorf("snapshot %s of the lab contains %s, and restoring it later would bring back a node without a machine; next: labctl snapshot delete %[1]s",
			snapshots[0].Name, name)
	}
	return err
}

// takeOut takes a node out of the cluster; clear is how.
func (c *Run) takeOut(ctx context.Context, n config.Node, clear func(*nodeJoin, context.Context) (join.Outcome, error)) error {
	j := &nodeJoin{Run: c, node: n, step: c.Events.Start(n.Name, "reset", resetBudget)}
	o, err := clear(j, ctx)
	if err == nil && o.Symptom != "" {
		err = fmt.Errorf("%s: %s: %s\nnext: %s", n.Name, o.Symptom, o.Evidence, o.Hint)
	}
	if err == nil {
		err = c.Admin.Kube.ForgetPods(ctx, n.Name)
	}
	return j.step.End(err)
}

func (c *Run) joinOne(ctx context.Context, n config.Node) error {
	pin, err := kube.CACertHash(c.Admin.Config)
	if err != nil {
		return err
	}
	return c.joinNode(ctx, n, pin)
}
