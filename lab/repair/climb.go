package repair

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8slab/config"
	"k8slab/lab/etcd"
	"k8slab/lab/session"
	"k8slab/lab/symptom"
)

// climb takes the next rung on every node that is left failing, one node after another, and tells whether it took any.
func (r *repairRun) climb(ctx context.Context) bool {
	r.settle = 0
	for _, n := range r.Cluster.Members() {
		g, ok := r.ailing(ctx, n.Name).next()
		if !ok || g > r.upTo || ctx.Err() != nil || r.refusal(ctx, n, g) != nil {
			continue
		}
		r.settle, r.waited = max(r.settle, rungs[g].settle), true
		r.take(ctx, n, g)
	}
	return r.settle > 0
}

// take takes the rung. Whether it helped, the next pass tells; why it failed is shown, and is left if the next rung is not allowed.
func (r *repairRun) take(ctx context.Context, n config.Node, g Rung) {
	r.mu.Lock()
	i := slices.IndexFunc(r.found, func(f Repaired) bool { return f.Node == n.Name && f.Left != "" })
	f := r.found[i]
	if k := slices.IndexFunc(r.found, func(f Repaired) bool { return f.Node == n.Name && len(f.rungs) > 0 }); k >= 0 {
		f.rungs, f.worked, f.Evidence = r.found[k].rungs, r.found[k].worked, r.found[k].Evidence
	}
	r.found = slices.DeleteFunc(r.found, func(o Repaired) bool { return o.Node == n.Name && (o.Left != "" || len(o.rungs) > 0) })
	r.mu.Unlock()
	r.step.Progress("%s: %s: %s", n.Name, f.Symptom, rungs[g].do)
	f.rungs, f.Left = append(slices.Clone(f.rungs), g), ""
	if err := r.rung(ctx, n, g); err != nil {
		r.step.Progress("%s: %v", n.Name, err)
		f.Evidence += fmt.Sprintf("; %s failed: %v", rungs[g].name, err)
	} else {
		f.worked = append(slices.Clone(f.worked), g)
	}
	if f.Did = did(f.worked); f.Did == "" {
		f.Did = "tried to " + rungs[g].do
	}
	r.mu.Lock()
	r.found = append(r.found, f)
	r.mu.Unlock()
}

func (r *repairRun) rung(ctx context.Context, n config.Node, g Rung) error {
	switch g {
	case Services:
		return restartServices(ctx, r.Nodes[n.Name])
	case Restart:
		return r.Restart(ctx, n)
	case Rejoin:
		return r.Rejoin(ctx, n)
	}
	return r.Recreate(ctx, n)
}

// restartServices restarts kubelet even where containerd did not start: each may be what fails.
func restartServices(ctx context.Context, on session.Runner) error {
	err := session.Do(ctx, on, "systemctl", "daemon-reload")
	for _, unit := range []string{"containerd", "kubelet"} {
		_ = session.Do(ctx, on, "systemctl", "reset-failed", unit) // fails where there is nothing to reset
		err = errors.Join(err, session.Do(ctx, on, "systemctl", "restart", unit))
	}
	return err
}

// ailing is the node as the ladder sees it. It fails if something on it is left.
func (r *repairRun) ailing(ctx context.Context, name string) ailing {
	r.mu.Lock()
	a := ailing{}
	for _, f := range r.found {
		if f.Node != name {
			continue
		}
		if f.Left != "" {
			a.symptoms = append(a.symptoms, symptom.ID(f.Symptom))
		}
		for _, g := range f.rungs {
			a.taken = max(a.taken, g)
		}
	}
	r.mu.Unlock()
	if len(a.symptoms) == 0 {
		return a
	}
	n, _ := r.Cluster.Node(name)
	a.runs = r.Runs(ctx, name)
	a.joined, a.answers = r.Fact(n).Joined, r.Answers(name)
	return a
}

// refusal says why a rung may not be taken on the node: it would cost the only control plane, or etcd's quorum.
func (r *repairRun) refusal(ctx context.Context, n config.Node, g Rung) error {
	if n.Role != config.ControlPlane || g < Restart {
		return nil
	}
	others := slices.DeleteFunc(r.JoinedControlPlanes(), func(o config.Node) bool { return o.Name == n.Name })
	if len(others) == 0 {
		if g == Restart {
			return nil // its disk stays, and nothing else is there to lose
		}
		return errors.New("no other control plane answers that has joined")
	}
	statuses, err := r.Admin.Etcd.Status(ctx)
	if err != nil && g == Restart {
		statuses, err = r.Admin.Etcd.LocalStatus(ctx) // without a quorum, a member that does not work may be restarted
	}
	if err != nil {
		return err
	}
	i := slices.IndexFunc(statuses, func(s etcd.Status) bool { return session.OwnsPeer(n, s.Member) })
	switch {
	case i < 0, statuses[i].Member.Learner:
		return nil
	case g > Restart:
		return etcd.QuorumAfterRemoval(statuses, statuses[i].Member.ID)
	case !statuses[i].Healthy:
		return nil
	}
	statuses[i].Healthy = false
	if !etcd.HasQuorum(statuses) {
		return errors.New("etcd would have no quorum while its machine is off")
	}
	return nil
}

// conclude says of each node that is left failing what was done, and which rung may help. In a dry run it says which rungs would be taken.
func (r *repairRun) conclude(ctx context.Context) {
	for _, n := range r.Cluster.Members() {
		a := r.ailing(ctx, n.Name)
		if len(a.symptoms) == 0 {
			continue
		}
		all := a.rest(r.upTo)
		if r.DryRun && len(all) > 0 && r.refusal(ctx, n, all[0]) == nil {
			r.foresee(n.Name, would(r.allowed(ctx, n, all)))
			continue
		}
		r.unhelped(n.Name, r.advice(ctx, n, a))
	}
}

// allowed are the rungs before the first that may not be taken now.
func (r *repairRun) allowed(ctx context.Context, n config.Node, all []Rung) []Rung {
	i := slices.IndexFunc(all, func(g Rung) bool { return r.refusal(ctx, n, g) != nil })
	if i < 0 {
		return all
	}
	return all[:i]
}

// advice names the rung that may help, "" if none does.
func (r *repairRun) advice(ctx context.Context, n config.Node, a ailing) string {
	g, ok := a.next()
	if !ok {
		return ""
	}
	if why := r.refusal(ctx, n, g); why != nil {
		return fmt.Sprintf("what may help is to %s, but not now: %v", rungs[g].do, why)
	}
	if g <= r.upTo { // it came to this point in the last pass
		return ""
	}
	return fmt.Sprintf("or `labctl repair --up-to %s`, for %s: %s", g, n.Name, rungs[g].do)
}

// foresee turns what is left on the node into what the rungs would do, once.
func (r *repairRun) foresee(node, would string) {
	first := true
	r.found = slices.DeleteFunc(r.found, func(f Repaired) bool {
		if f.Node != node || f.Left == "" {
			return false
		}
		drop := !first
		first = false
		return drop
	})
	for i, f := range r.found {
		if f.Node == node && f.Left != "" {
			r.found[i].Left, r.found[i].Would = "", would
		}
	}
}

// unhelped is what is left on the node, with the advice. What was done there about the same is no repair.
func (r *repairRun) unhelped(node, advice string) {
	left := slices.DeleteFunc(slices.Clone(r.found), func(f Repaired) bool { return f.Node != node || f.Left == "" })
	var vain []string
	r.found = slices.DeleteFunc(r.found, func(f Repaired) bool {
		same := slices.ContainsFunc(left, func(l Repaired) bool { return sameCause(symptom.ID(f.Symptom), symptom.ID(l.Symptom)) })
		if f.Node != node || f.Did == "" || len(f.rungs) == 0 && !same {
			return false
		}
		vain = append(vain, f.Did)
		return true
	})
	for i, f := range r.found {
		if f.Node != node || f.Left == "" {
			continue
		}
		if len(vain) > 0 {
			r.found[i].Evidence += "; labctl " + strings.Join(vain, ", ") + ", and it still fails"
		}
		if advice != "" {
			r.found[i].Left += "; " + advice
		}
	}
}

// sameCause tells whether a failure that was repaired is what still fails, or was brought about by it.
func sameCause(repaired, left symptom.ID) bool {
	return repaired == left || symptom.Brings(left, repaired) || symptom.General(repaired)
}
