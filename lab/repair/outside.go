package repair

import (
	"context"
	"slices"
	"time"

	"k8slab/config"
	"k8slab/lab/kube"
	"k8slab/lab/session"
	"k8slab/lab/symptom"
)

// outside registers nodes whose Node was deleted, and joins those that are in no cluster. It first waits for running joins: the stages
// before have repaired what those may wait for.
func (r *repairRun) outside(ctx context.Context) error {
	if !r.DryRun {
		r.waited = slices.ContainsFunc(r.Cluster.Members(), func(n config.Node) bool { return r.Fact(n).Running() })
		if err := r.FinishRunning(ctx); err != nil {
			return err
		}
	}
	nodes, err := r.Admin.Kube.Nodes(ctx)
	if err != nil {
		return err
	}
	var toJoin []nonMember
	for _, n := range r.Cluster.Members() {
		switch f := r.Fact(n); {
		case !r.Answers(n.Name) && r.reached(ctx, n):
			r.add(Repaired{Node: n.Name, Symptom: string(labnodeSilent), Evidence: "labnode, by which labctl works on the node, gives no answer",
				Left: "labctl ssh " + n.Name + " labnode facts shows why"})
		case !r.Answers(n.Name):
			r.add(Repaired{Node: n.Name, Symptom: string(symptom.NodeUnreachable), Evidence: "it does not answer over SSH", Left: "labctl up starts its machine"})
		case f.Running():
			r.add(Repaired{Node: n.Name, Symptom: string(kubeadmRunning), Evidence: "kubeadm runs on it",
				Left: "labctl join " + n.Name + " follows it to its end"})
		case f.Joined && session.FindNode(nodes, n.Name) == nil:
			toJoin = append(toJoin, nonMember{n, symptom.NodeNameMismatch, "its kubelet runs and its Node was deleted",
				"restart kubelet, which registers it", "restarted kubelet, which registered it"})
		case f.Joined && !r.IsMember(n, nodes):
			toJoin = append(toJoin, nonMember{n, symptom.NodeNameExists, "its Node is of another machine-id, or it is in another cluster",
				"reset it and join it again; its Node goes if no other machine keeps it alive", "reset it and joined it again"})
		case !f.Joined:
			toJoin = append(toJoin, nonMember{n, symptom.KubeletConfigMissing, "it is in no cluster", "labctl join " + n.Name, "joined it to the cluster"})
		}
	}
	if r.DryRun {
		for _, o := range toJoin {
			r.add(o.foreseen(r.before))
		}
		return nil
	}
	return r.joinAll(ctx, toJoin)
}

// reached tells whether the node's machine answers over SSH.
func (r *repairRun) reached(ctx context.Context, n config.Node) bool {
	ctx, cancel := r.Within(ctx, 10*time.Second)
	defer cancel()
	_, err := r.Nodes[n.Name].Read(ctx, "true")
	return err == nil
}

// nonMember is a node that is to be registered or joined.
type nonMember struct {
	node       config.Node
	symptom    symptom.ID
	evidence   string
	would, did string
}

func (o nonMember) found() Repaired {
	return Repaired{Node: o.node.Name, Symptom: string(o.symptom), Evidence: o.evidence}
}

// foreseen is what a repair would do about the node in a dry run. A cause that only a person can remove would stop the join.
func (o nonMember) foreseen(findings []symptom.Finding) Repaired {
	f := o.found()
	for _, s := range findings {
		if s.Node == f.Node && s.Level == symptom.Fail && s.BecauseOf == "" && !s.Repairable && s.Symptom != o.symptom {
			return leftOver(s)
		}
	}
	f.Would = o.would
	return f
}

// joinAll joins the nodes to the cluster and adds a finding for each.
func (r *repairRun) joinAll(ctx context.Context, all []nonMember) error {
	err := r.JoinAll(ctx)
	if ctx.Err() != nil {
		return err
	}
	nodes, unread := r.Admin.Kube.Nodes(ctx)
	if unread != nil {
		return unread
	}
	for _, o := range all {
		f := o.found()
		switch why, failed := r.Failures()[o.node.Name]; {
		case failed:
			f.Evidence, f.Left = f.Evidence+", and the join failed: "+why.Error(), "labctl join "+o.node.Name+", when the cause is gone"
			r.add(f)
		case r.isIn(o.node, nodes):
			f.Did = o.did
			r.add(f)
		}
	}
	if len(r.Failures()) > 0 { // they are findings
		return nil
	}
	return err
}

// isIn tells whether the node has joined and has its Node.
func (r *repairRun) isIn(n config.Node, nodes []kube.Node) bool {
	return r.Fact(n).Joined && session.FindNode(nodes, n.Name) != nil
}
