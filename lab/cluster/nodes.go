package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8slab/config"
	"k8slab/lab/etcd"
	"k8slab/lab/event"
	"k8slab/lab/health"
	"k8slab/lab/host"
	"k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/provision"
	"k8slab/lab/session"
	"k8slab/lab/wait"
)

// Open opens the cluster that exists, through a control plane that has joined. Nodes that do not answer have no facts. The caller holds the
// lab's lock.
func Open(ctx context.Context, s *session.Session, images ImageImport) (*Run, error) {
	facts, silent := s.Facts(ctx, s.Cluster.Members())
	c := New(s, facts, images)
	joined := c.JoinedControlPlanes()
	if len(joined) == 0 {
		return nil, errors.Join(errors.New("no control plane that has joined answers; next: labctl up"), silent)
	}
	return c, c.openAdmin(ctx, joined)
}

// ready refuses a node that does not answer, and waits for a kubeadm that runs on it.
func (c *Run) ready(ctx context.Context, n config.Node) error {
	if !c.Answers(n.Name) {
		state, err := c.Machines.State(ctx, n.Name)
		return errors.Join(fmt.Errorf("%s: it does not answer over SSH; its machine is %s; next: labctl up", n.Name, state), err)
	}
	return c.Finish(ctx, n)
}

// Join joins one node to the cluster. It leaves a healthy member as it is, and returns an error for a member that is not healthy.
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

// Rejoin resets the node, whatever its state, and joins it again.
func (c *Run) Rejoin(ctx context.Context, n config.Node) error {
	if err := c.ready(ctx, n); err != nil {
		return err
	}
	return c.joinOne(ctx, n)
}

// Reset takes the node out of the cluster. It removes its etcd member, what kubeadm did on the machine, its Node, and its pods, in this
// order.
func (c *Run) Reset(ctx context.Context, n config.Node) error {
	if err := c.ready(ctx, n); err != nil {
		return err
	}
	return c.takeOut(ctx, n, (*nodeJoin).clear)
}

// Remove takes the node out of the cluster as Reset does, deletes its machine with the disk, and removes it from the lab's state. On a
// machine that does not answer, nothing is reset before.
func (c *Run) Remove(ctx context.Context, n config.Node) error {
	if err := Removable(ctx, c.Session, n.Name); err != nil {
		return err
	}
	if c.Answers(n.Name) {
		if err := c.Reset(ctx, n); err != nil {
			return err
		}
		if err := c.Retire(ctx); err != nil { // before its machine is gone: the connection to the cluster may go through it
			return err
		}
		if err := provision.Delete(ctx, c.Session, n.Name); err != nil {
			return err
		}
	} else if err := c.takeOut(ctx, n, (*nodeJoin).clearSilent); err != nil {
		return err
	}
	return c.Forget(n.Name)
}

// Evict moves the pods of a node away and then removes it, as Remove does. A control plane goes only if etcd's others keep a quorum.
func (c *Run) Evict(ctx context.Context, n config.Node) error {
	step := c.Events.Start(n.Name, "drain", kube.DrainBudget)
	err := c.spare(ctx, n, step)
	if err == nil {
		err = c.Admin.Kube.Drain(ctx, n.Name, step.Progress)
	}
	if err := step.End(err); err != nil {
		return err
	}
	return c.Remove(ctx, n)
}

// spareBudget is how long members that have just started may take to answer.
const spareBudget = 30 * time.Second

// spare waits until etcd can do without the node's member. It changes nothing.
func (c *Run) spare(ctx context.Context, n config.Node, step *event.Step) error {
	if n.Role != config.ControlPlane {
		return nil
	}
	if c.only(n) {
		return errOnly
	}
	budget := spareBudget * time.Duration(c.TimeScale())
	return wait.For(ctx, "etcd to do without "+n.Name, budget, c.Pace(), session.ShowWaiting(step, func(ctx context.Context) error {
		statuses, err := c.Admin.Etcd.Status(ctx)
		for _, s := range statuses {
			if err == nil && session.OwnsPeer(n, s.Member) {
				return etcd.QuorumAfterRemoval(statuses, s.Member.ID)
			}
		}
		return err
	}))
}

// Removable says why the node cannot be removed, before anything is done to it.
func Removable(ctx context.Context, s *session.Session, name string) error {
	if err := provision.MadeByLabctl(ctx, s, name); err != nil {
		return err
	}
	return unsaved(ctx, s, name)
}

// unsaved refuses to change a node's machine while a snapshot has it as it is.
func unsaved(ctx context.Context, s *session.Session, name string) error {
	if s.URI != host.VirtualMachines {
		return nil
	}
	snapshots, err := provision.Snapshots(ctx, s)
	if err == nil && len(snapshots) > 0 {
		err = fmt.Errorf("snapshot %s of the lab contains %s as it is now, and restoring it later would bring that back; next: labctl snapshot delete %[1]s",
			snapshots[0].Name, name)
	}
	return err
}

// takeOut takes a node out of the cluster; clear is how.
func (c *Run) takeOut(ctx context.Context, n config.Node, clear func(*nodeJoin, context.Context) (join.Outcome, error)) error {
	j := &nodeJoin{Run: c, node: n, step: c.Events.Start(n.Name, "reset", resetBudget)}
	o, err := clear(j, ctx)
	if err = j.blocked(o, err); err == nil {
		err = c.Admin.Kube.ForgetPods(ctx, n.Name)
	}
	return j.step.End(err)
}

// joinOne joins the node, and waits for its first pods.
func (c *Run) joinOne(ctx context.Context, n config.Node) error {
	pin, err := kube.CACertHash(c.Admin.Config)
	if err != nil {
		return err
	}
	if err := c.joinNode(ctx, n, pin); err != nil {
		return err
	}
	c.awaitPods(ctx, n)
	return nil
}

// podsBudget is what kube-proxy and flannel may take to run on a node that has just joined.
const podsBudget = 15 * time.Second

// awaitPods waits until kube-proxy and flannel, where the cluster has them, run on the node: before, a diagnosis misses them. The node is a
// member also without them, so it is no error if they do not run.
func (c *Run) awaitPods(ctx context.Context, n config.Node) {
	budget := podsBudget * time.Duration(c.TimeScale())
	step := c.Events.Start(n.Name, "pods", budget)
	err := wait.For(ctx, "kube-proxy and flannel on "+n.Name, budget, c.Pace(), session.ShowWaiting(step, func(ctx context.Context) error {
		proxies, err := c.Admin.Kube.Pods(ctx, "kube-system", "k8s-app=kube-proxy")
		flannels, err2 := c.Admin.Kube.Pods(ctx, health.FlannelNamespace, "app=flannel")
		return errors.Join(err, err2, runsOn(n.Name, "kube-proxy", proxies), runsOn(n.Name, "flannel", flannels))
	}))
	if err != nil {
		step.EndWith(err.Error() + "; next: labctl diagnose")
		return
	}
	_ = step.End(nil)
}

// runsOn says why no pod of what every node has is ready on the node, nil if one is, or no node has any.
func runsOn(node, what string, pods []kube.Pod) error {
	if len(pods) == 0 {
		return nil
	}
	err := fmt.Errorf("%s has no pod there yet", what)
	for _, p := range pods {
		switch {
		case p.Node == node && p.Ready && !p.Deleting:
			return nil
		case p.Node == node && !p.Deleting:
			err = fmt.Errorf("pod %s/%s is not ready: %s", p.Namespace, p.Name, p.Reason)
		}
	}
	return err
}
