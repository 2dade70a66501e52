package health

import (
	"context"
	"fmt"
	"slices"

	"k8slab/lab/etcd"
	"k8slab/lab/join"
	"k8slab/lab/machine"
	"k8slab/lab/session"
)

// Traces lists what the cluster still has of a node: its Node, its etcd member, a kubeadm that runs on its machine.
func Traces(ctx context.Context, s *session.Session, v *session.Admin, name string) (found []string, err error) {
	k, err := v.Kube.Node(ctx, name)
	if err != nil {
		return nil, err
	}
	if k != nil {
		found = append(found, "the Node "+name)
	}
	members, err := v.Etcd.Members(ctx)
	if err != nil {
		return nil, err
	}
	n, _ := s.Cluster.Node(name)
	if slices.ContainsFunc(members, func(m etcd.Member) bool { return session.OwnsPeer(n, m) }) {
		found = append(found, "its etcd member")
	}
	state, err := s.Machines.State(ctx, name)
	if on := s.Nodes[name]; err == nil && state == machine.Running && on != nil {
		if f, unread := s.ReadFacts(ctx, on); unread == nil && f.Running() {
			found = append(found, "a running kubeadm on its machine")
		}
	}
	return found, err
}

// Preflight has the node check what a join needs of its machine and, with fix, repair what is safe to repair. A machine that has joined is
// not checked.
func Preflight(ctx context.Context, s *session.Session, name string, fix bool) ([]join.Check, error) {
	n := s.Nodes[name]
	if n == nil {
		return nil, fmt.Errorf("%s has no machine in the lab yet", name)
	}
	if f, err := s.ReadFacts(ctx, n); err != nil || f.Joined {
		return nil, err
	}
	args := []string{"preflight"}
	if fix {
		args = append(args, "--fix")
	}
	return s.Checked(ctx, name, session.RepairBudget, args...)
}
