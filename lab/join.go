package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8slab/config"
	"k8slab/lab/etcd"
	"k8slab/lab/kube"
)

// join gets every node into the cluster: control planes one after another, and the workers together beside them.
func (c *forming) join(ctx context.Context) error {
	nodes, err := c.view.kube.Nodes(ctx)
	if err != nil {
		return err
	}
	if nodes, err = c.reregister(ctx, nodes); err != nil {
		return err
	}
	outside := slices.DeleteFunc(c.lab.cluster.Members(), func(n config.Node) bool { return c.isMember(n, nodes) || c.silent(n) })
	if len(outside) == 0 {
		return nil
	}
	hash, err := kube.CACertHash(c.view.config)
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
	go func() { failed <- together(workers, func(n config.Node) error { return c.joinNode(ctx, n, hash) }) }()
	var errs []error
	for _, n := range controlPlanes {
		// The next one would meet what this one left: it waits for the repair.
		err := c.make(ctx, n)
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
func (c *forming) silent(n config.Node) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, answers := c.facts[n.Name]
	return !answers && c.boot == nil
}

// make makes the machine of a control plane that has waited for its turn (tuning.stagger), once the ones before are stable.
func (c *forming) make(ctx context.Context, n config.Node) error {
	if _, made := c.facts[n.Name]; made {
		return nil
	}
	j := &joining{forming: c, node: n, step: c.lab.events.Start(n.Name, "turn", c.stabilize())}
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
	if err := c.boot(ctx, n); err != nil {
		return err
	}
	return c.look(ctx, n)
}

func findNode(nodes []kube.Node, name string) *kube.Node {
	for i := range nodes {
		if nodes[i].Name == name {
			return &nodes[i]
		}
	}
	return nil
}

// hasJoined tells whether kubeadm finished on the node, for this cluster's CA.
func (c *forming) hasJoined(n config.Node) bool {
	f, reference := c.fact(n), c.fact(c.joinedControlPlanes()[0])
	return f.Joined && f.CA == reference.CA
}

// isMember tells whether the node is in this cluster: it has joined, and its Node is this machine's.
func (c *forming) isMember(n config.Node, nodes []kube.Node) bool {
	k := findNode(nodes, n.Name)
	return c.hasJoined(n) && k != nil && k.MachineID == c.fact(n).MachineID
}

// ownsPeer tells whether the etcd member has the node's address.
func ownsPeer(n config.Node, m etcd.Member) bool {
	return slices.Contains(m.PeerURLs, peerURL(n))
}

// peerURL is where the node's etcd member is for the others.
func peerURL(n config.Node) string { return fmt.Sprintf("https://%s:2380", n.IP) }
