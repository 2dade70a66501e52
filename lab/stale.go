package lab

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/etcd"
	"k8slab/lab/wait"
)

// restoredFile names, in the lab's state, the control plane whose etcd has replaced all others'. It is there from a restore until `up` has
// reset those, because nothing on their machines tells that they are outdated: they have the same CA, and their etcd may even have a
// quorum of its own.
const restoredFile = "restored"

// isRestored tells whether the node's etcd is the one that counts.
func (l *Lab) isRestored(n config.Node) bool {
	name, err := os.ReadFile(l.state.path(restoredFile))
	return err == nil && n.Name == strings.TrimSpace(string(name))
}

// restoredFirst moves the restored control plane to the front.
func (l *Lab) restoredFirst(nodes []config.Node) []config.Node {
	i := slices.IndexFunc(nodes, l.isRestored)
	if i <= 0 {
		return nodes
	}
	return slices.Concat(nodes[i:i+1], nodes[:i], nodes[i+1:])
}

// resetBudget bounds the stop and the reset of one node.
const resetBudget = 5 * time.Minute

// dropStale resets, after a restore, the control planes that are still of the cluster that it replaced. All of them, before any joins: a
// join could find an etcd of theirs and be added there.
func (c *forming) dropStale(ctx context.Context) error {
	l := c.lab
	joined := c.joinedControlPlanes()
	if !l.isRestored(joined[0]) { // also when its machine was lost since: then there is no newer cluster
		return l.forgetRestore()
	}
	var members []etcd.Member
	what := "etcd of " + joined[0].Name + ", which was restored"
	err := wait.For(ctx, what, c.stabilize(), l.pace(), func(ctx context.Context) (err error) {
		members, err = c.view.etcd.Members(ctx)
		return err
	})
	if err != nil {
		return err
	}
	err = together(outdated(joined[1:], members), func(n config.Node) error {
		step := l.events.Start(n.Name, "reset", resetBudget)
		step.Progress("its etcd was replaced by the one restored on %s", joined[0].Name)
		if err := l.resetOutdated(ctx, n.Name); err != nil {
			return step.End(err)
		}
		return step.End(c.look(ctx, n))
	})
	if err != nil {
		return err
	}
	return l.forgetRestore()
}

func (l *Lab) forgetRestore() error {
	err := os.Remove(l.state.path(restoredFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// outdated are the control planes that have joined, but not the cluster of these members.
func outdated(joined []config.Node, members []etcd.Member) []config.Node {
	return slices.DeleteFunc(slices.Clone(joined), func(n config.Node) bool {
		return slices.ContainsFunc(members, func(m etcd.Member) bool { return ownsPeer(n, m) })
	})
}

// resetOutdated resets a control plane of a replaced cluster. What it runs is stopped before, so that kubeadm reads the new cluster's
// configuration and not the old one's; it does not remove the data of an etcd whose member it cannot find.
func (l *Lab) resetOutdated(ctx context.Context, name string) error {
	n := l.nodes[name]
	if err := park(ctx, n, l.pace()); err != nil && !errors.Is(err, errNoKubelet) { // a reset ends what runs without one
		return err
	}
	if err := l.reset(ctx, name); err != nil {
		return err
	}
	return runOn(ctx, n, "rm", "-rf", parkDir, etcdData+"/member")
}
