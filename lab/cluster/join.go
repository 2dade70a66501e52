package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8slab/config"
	"k8slab/lab/etcd"
	"k8slab/lab/kube"
	"k8slab/lab/session"
)

// JoinAll gets every node into the cluster: control planes one after another, and the workers together beside them.
func (c *Run) JoinAll(ctx context.Context) error {
	nodes, err := c.Admin.Kube.Nodes(ctx)
	if err != nil {
		return err
	}
	if nodes, err = c.reregister(ctx, nodes); err != nil {
		return err
	}
	members, unread := c.Admin.Etcd.Members(ctx) // without a quorum nobody can join as a control plane
	outside := slices.DeleteFunc(c.Cluster.Members(), func(n config.Node) bool {
		// A reset that was interrupted has removed the etcd member of a control plane that looks as if it had joined.
		dismissed := n.Role == config.ControlPlane && unread == nil && !slices.ContainsFunc(members, func(m etcd.Member) bool { return session.OwnsPeer(n, m) })
		return c.silent(n) || c.IsMember(n, nodes) && !dismissed
	})
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
		// The next one would meet what this one left: it waits for the repair.
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

// silent tells whether the node did not answer. Whether it is a member nobody knows, and where machines are made one after another a node without
// facts is one that has no machine yet.
func (c *Run) silent(n config.Node) bool { return !c.Answers(n.Name) && c.Boot == nil }

// makeMachine makes the machine of a control plane that has waited for its turn (tuning.stagger), once the ones before are stable.
func (c *Run) makeMachine(ctx context.Context, n config.Node) error {
	if c.Answers(n.Name) {
		return nil
	}
	j := &nodeJoin{Run: c, node: n, step: c.Events.Start(n.Name, "turn", c.StabilizeBudget())}
	o, err := j.clearMembers(ctx) // the member of a machine that was lost would never become healthy
	if err == nil && o.Symptom != "" {
		err = fmt.Errorf("%s: %s: %s\nnext: %s", n.Name, o.Symptom, o.Evidence, o.Hint)
	}
	if err == nil {
		err = j.stable(ctx)
	}
	if err := j.step.End(err); err != nil {
		return err
	}
	if err := c.Boot(ctx, n); err != nil {
		return err
	}
	return c.refreshFacts(ctx, n)
}

// hasJoined tells whether kubeadm finished on the node, for this cluster's CA.
func (c *Run) hasJoined(n config.Node) bool {
	f, reference := c.Fact(n), c.Fact(c.JoinedControlPlanes()[0])
	return f.Joined && f.CA == reference.CA
}

// IsMember tells whether the node is in this cluster: it has joined, and its Node is this machine's.
func (c *Run) IsMember(n config.Node, nodes []kube.Node) bool {
	k := session.FindNode(nodes, n.Name)
	return c.hasJoined(n) && k != nil && k.MachineID == c.Fact(n).MachineID
}
