package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8slab/config"
	"k8slab/lab/etcd"
	"k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/session"
)

// JoinAll joins every node that is not a member: control planes one after another, and at the same time all workers together.
func (c *Run) JoinAll(ctx context.Context) error {
	nodes, err := c.Admin.Kube.Nodes(ctx)
	if err != nil {
		return err
	}
	if nodes, err = c.reregister(ctx, nodes); err != nil {
		return err
	}
	members, unread := c.Admin.Etcd.Members(ctx) // unread without a quorum: workers can join all the same
	outside := slices.DeleteFunc(c.Cluster.Members(), func(n config.Node) bool {
		// After an interrupted reset, a control plane still looks joined but has no etcd member.
		dismissed := n.Role == config.ControlPlane && unread == nil && !slices.ContainsFunc(members, func(m etcd.Member) bool { return session.OwnsPeer(n, m) })
		return c.silent(n) || c.IsMember(n, nodes) && !dismissed
	})
	return c.JoinNodes(ctx, outside)
}

// JoinNodes joins the nodes, none of which is a member.
func (c *Run) JoinNodes(ctx context.Context, outside []config.Node) error {
	if len(outside) == 0 {
		return nil
	}
	hash, err := kube.CACertHash(c.Admin.Config)
	if err != nil {
		return err
	}
	var controlPlanes, workers []config.Node
	for _, n := range outside {
		if n.Role == config.ControlPlane {
			controlPlanes = append(controlPlanes, n)
		} else {
			workers = append(workers, n)
		}
	}
	failed := make(chan error, 1)
	go func() {
		failed <- session.ForEachNode(workers, func(n config.Node) error { return c.joinNode(ctx, n, hash) })
	}()
	var errs []error
	for _, n := range controlPlanes {
		// After a failure the next control plane is not tried: the failed one's etcd member would be in its way.
		err := c.makeMachine(ctx, n)
		if err == nil {
			err = c.joinNode(ctx, n, hash)
		}
		if err != nil {
			errs = append(errs, err)
			break
		}
	}
	return errors.Join(append(errs, <-failed)...)
}

// silent tells whether the node's machine did not answer, so that its membership is unknown. With staggered control planes, a node without
// facts just has no machine yet.
func (c *Run) silent(n config.Node) bool { return !c.Answers(n.Name) && c.Boot == nil }

// makeMachine makes the machine of a staggered control plane (tuning.stagger), once the control planes before it are stable.
func (c *Run) makeMachine(ctx context.Context, n config.Node) error {
	if c.Answers(n.Name) {
		return nil
	}
	j := &nodeJoin{Run: c, node: n, step: c.Events.Start(n.Name, "turn", c.StabilizeBudget())}
	o, err := j.clearMembers(ctx) // the member of a lost machine would never become healthy
	if err = j.blocked(o, err); err == nil {
		err = j.stable(ctx)
	}
	if err := j.step.End(err); err != nil {
		return err
	}
	if err := c.Boot(ctx, n); err != nil {
		return err
	}
	return c.RefreshFacts(ctx, n)
}

// blocked is err, or else the error of an outcome that has a cause.
func (j *nodeJoin) blocked(o join.Outcome, err error) error {
	if err == nil && o.Symptom != "" {
		err = fmt.Errorf("%s: %s: %s\nnext: %s", j.node.Name, o.Symptom, o.Evidence, o.Hint)
	}
	return err
}

// hasJoined tells whether the node has joined a cluster with this cluster's CA.
func (c *Run) hasJoined(n config.Node) bool {
	f, reference := c.Fact(n), c.Fact(c.JoinedControlPlanes()[0])
	return f.Joined && f.CA == reference.CA
}

// IsMember tells whether the node is in this cluster: it has joined, and its Node is this machine's.
func (c *Run) IsMember(n config.Node, nodes []kube.Node) bool {
	k := session.FindNode(nodes, n.Name)
	return c.hasJoined(n) && k != nil && k.MachineID == c.Fact(n).MachineID
}
