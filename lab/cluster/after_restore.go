package cluster

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8slab/config"
	"k8slab/lab/etcd"
	"k8slab/lab/etcdadmin"
	"k8slab/lab/session"
	"k8slab/lab/wait"
)

// resetBudget bounds the reset of one node.
const resetBudget = 5 * time.Minute

// dropStale resets, after a restore, the control planes that still belong to the replaced cluster. It resets all of them before any node
// joins: otherwise a join could reach an old etcd and become its member.
func (c *Run) dropStale(ctx context.Context) error {
	s := c.Session
	joined := c.JoinedControlPlanes()
	if !s.IsRestored(joined[0]) { // no restore, or its machine was lost since: then no control plane is outdated
		return s.ForgetRestore()
	}
	var members []etcd.Member
	what := "etcd of " + joined[0].Name + ", which was restored"
	err := wait.For(ctx, what, c.StabilizeBudget(), s.Pace(), func(ctx context.Context) (err error) {
		members, err = c.Admin.Etcd.Members(ctx)
		return err
	})
	if err != nil {
		return err
	}
	err = session.ForEachNode(outdated(joined[1:], members), func(n config.Node) error {
		step := s.Events.Start(n.Name, "reset", resetBudget)
		step.Progress("its etcd was replaced by the one restored on %s", joined[0].Name)
		if err := resetOutdated(ctx, s, n.Name); err != nil {
			return step.End(err)
		}
		return step.End(c.RefreshFacts(ctx, n))
	})
	if err != nil {
		return err
	}
	return s.ForgetRestore()
}

// outdated are the control planes that have joined another cluster than that of these members.
func outdated(joined []config.Node, members []etcd.Member) []config.Node {
	return slices.DeleteFunc(slices.Clone(joined), func(n config.Node) bool {
		return slices.ContainsFunc(members, func(m etcd.Member) bool { return session.OwnsPeer(n, m) })
	})
}

// resetOutdated resets a control plane of a replaced cluster. Its API server and etcd are stopped first, so that kubeadm reads the new
// cluster's configuration. etcd's data is removed here, because kubeadm leaves it when etcd does not know the member.
func resetOutdated(ctx context.Context, s *session.Session, name string) error {
	n := s.Nodes[name]
	if err := etcdadmin.Park(ctx, n, s.Pace()); err != nil && !errors.Is(err, etcdadmin.ErrNoKubelet) { // without a kubelet the reset stops the containers
		return err
	}
	if err := reset(ctx, s, name); err != nil {
		return err
	}
	return session.Do(ctx, n, "rm", "-rf", etcdadmin.ParkDir, session.EtcdData+"/member")
}
