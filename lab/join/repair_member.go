package join

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8slab/lab/kube"
)

// RepairMember looks for faults of a node that has joined and, unless dryRun, repairs what is safe to repair: containerd, kubelet, the
// configuration of the pod network, swap, modules, sysctls. It never touches certificates, kubeconfigs or etcd's data. A repaired check has
// the cause that was found, and Fixed says what was done; a repair that was refused or did not help is Blocked.
func RepairMember(ctx context.Context, m Machine, dryRun bool) []Check {
	list := probes(func(pr probe) bool { return pr.Repairable })
	checks := make([]Check, len(list))
	look := newPreflight(ctx, m, Target{})
	var wg sync.WaitGroup
	for i, pr := range list {
		wg.Go(func() { checks[i] = look.one(ctx, pr) })
	}
	wg.Wait()
	onMember(checks)
	if dryRun {
		return checks
	}
	for i, pr := range list { // one after another: the repair of a cause may also repair its effects
		if checks[i].Result == Fixable && pr.repair != nil && ctx.Err() == nil {
			found := checks[i]
			checks[i] = repair(ctx, m, Target{}, pr, found)
			if checks[i].Fixed != "" { // show what was wrong, not that it is well now
				checks[i].Symptom, checks[i].Evidence = found.Symptom, found.Evidence
			}
		}
	}
	if slices.ContainsFunc(checks, func(c Check) bool { return c.Fixed != "" && c.ID.Traits().Kubelets }) {
		lookAgain(ctx, m)
	}
	return checks
}

// lookBudget bounds how long a restarted kubelet may take until its node is Ready. If it takes longer, the cause is another than the one
// that was repaired.
const lookBudget = 20 * time.Second

// lookAgain restarts a member's kubelet and waits until kubelet reports its node Ready. A running kubelet asks the runtime every 5 s and
// tells the cluster every 10 s, so seconds after a repair it could still report the state before it. Without a way to the API server
// kubelet is left alone.
func lookAgain(ctx context.Context, m Machine) {
	ctx, cancel := context.WithTimeout(ctx, lookBudget)
	defer cancel()
	w := newMember(m, Target{})
	client, err := w.kube()
	if err != nil {
		return
	}
	defer client.Close()
	before, err := client.Node(ctx, w.name)
	if err != nil || before == nil {
		return
	}
	if _, err := m.Run(ctx, "systemctl", "restart", "kubelet.service"); err == nil {
		_ = client.WatchNode(ctx, w.name, func(n *kube.Node) bool { return n != nil && n.Ready && n.Heartbeat.After(before.Heartbeat) })
	}
}
