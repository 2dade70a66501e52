package join

import (
	"context"
	"slices"
)

// unexamined are the preflight's checks that mean something only before a join, or that put load on a disk.
var unexamined = []string{"machine-id", "product-uuid", "memory", "cpu", "leftovers", "etcd-disk", "etcd-peers", "control-plane-endpoint"}

// Examine makes the checks that hold on a machine whatever it is, a member or not: of its host, its runtime, kubelet's unit and the way to the
// target's endpoint; and on one that has joined, those that Mend repairs. It changes nothing. The result is sorted as Preflight's.
func Examine(ctx context.Context, m Machine, t Target) []Check {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	list := slices.DeleteFunc(probes(t), func(pr probe) bool { return slices.Contains(unexamined, pr.id) })
	if m.Exists(kubeletConf) {
		list = append(list, memberOnly[0]) // Validate tells of the service
	}
	checks := newPreflight(ctx, m, t).all(ctx, list, nil)
	if m.Exists(kubeletConf) {
		onMember(checks)
		rank(checks)
	}
	return checks
}

// Mendable reports whether Mend can repair what the check of this ID found fixable.
func Mendable(id string) bool {
	return slices.Contains(mendable, id) || slices.ContainsFunc(memberOnly, func(pr probe) bool { return pr.id == id })
}
