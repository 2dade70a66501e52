package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8slab/config"
	"k8slab/lab/etcd"
	"k8slab/lab/etcdadmin"
	"k8slab/lab/join"
	"k8slab/lab/node"
	"k8slab/lab/provision"
	"k8slab/lab/session"
	"k8slab/lab/symptom"
	"k8slab/lab/wait"
)

// clear removes what an earlier join of the node left: on the machine, in etcd and in the API, in this order, because kubeadm's reset needs
// the Node. It shows each cause. If it must not remove something, the Outcome says what.
func (j *nodeJoin) clear(ctx context.Context) (join.Outcome, error) {
	if j.only(j.node) {
		return join.Outcome{}, errOnly
	}
	f := j.Fact(j.node)
	if f.Running() { // this kubeadm still needs its etcd member
		return join.Outcome{}, errors.New("kubeadm is at work on the machine; next: labctl join " + j.node.Name + ", which follows it to its end")
	}
	if f.Dirty || f.Joined {
		if j.number == 1 && !f.Joined { // in a later attempt, the first one left them
			j.cause(symptom.LeftoverState, "files or processes of an earlier kubeadm are on the machine")
		}
		if err := j.resetMachine(ctx); err != nil {
			return join.Outcome{}, err
		}
	}
	if j.node.Role == config.ControlPlane {
		if o, err := j.clearMembers(ctx); err != nil || o.Symptom != "" {
			return o, err
		}
	}
	return j.clearNode(ctx)
}

// removeMember removes the etcd member of a control plane, as far as the quorum allows it.
func (j *nodeJoin) removeMember(ctx context.Context) error {
	if j.node.Role != config.ControlPlane {
		return nil
	}
	return etcdadmin.RemoveMember(ctx, j.Session, j.Admin, j.node)
}

// resetMachine removes the node's etcd member, and undoes on the machine what kubeadm did there.
func (j *nodeJoin) resetMachine(ctx context.Context) error {
	if err := j.removeMember(ctx); err != nil {
		return err
	}
	j.step.Progress("resetting what an earlier join left")
	if err := reset(ctx, j.Session, j.node.Name); err != nil {
		return err
	}
	j.stopped = true
	return j.RefreshFacts(ctx, j.node) // it no longer counts as a joined control plane
}

// clearSilent is clear for a machine that does not answer and is being removed: it removes the etcd member, the machine, with whatever runs
// on it, and the Node.
func (j *nodeJoin) clearSilent(ctx context.Context) (join.Outcome, error) {
	if err := j.removeMember(ctx); err != nil {
		return join.Outcome{}, err
	}
	if err := provision.Delete(ctx, j.Session, j.node.Name); err != nil {
		return join.Outcome{}, err
	}
	j.stopped = true
	j.setFact(j.node, join.Facts{MachineID: j.machineID(j.node.Name)})
	return j.clearNode(ctx)
}

// reset undoes what kubeadm did on the node. Its etcd member must have been removed before.
func reset(ctx context.Context, s *session.Session, name string) error {
	return s.Nodes[name].Run(ctx, node.Command{Argv: []string{session.LabnodePath, "reset", "--member-removed"}})
}

// clearMembers removes the etcd members that are in the way of the join, and waits for those of a running join.
func (j *nodeJoin) clearMembers(ctx context.Context) (o join.Outcome, err error) {
	seen := ""
	err = wait.For(ctx, "another join to end", j.StabilizeBudget(), j.Pace(), func(ctx context.Context) error {
		removed, left, err := etcdadmin.Clean(ctx, j.Session, j.Admin, j.node.Name)
		for _, v := range removed {
			j.cause(memberSymptom(v), "removed etcd member %s: %s", v.Member, v.Reason)
		}
		if err != nil {
			return err
		}
		for _, v := range left {
			switch v.Action {
			case etcd.Stop:
				o = join.Outcome{Symptom: memberSymptom(v), Phase: join.PhaseCluster, ExitCode: -1, Evidence: fmt.Sprintf("etcd member %s: %s", v.Member, v.Reason),
					Hint: "labctl etcd members; bring the lost members back, or labctl etcd snapshot restore"}
			case etcd.Wait:
				if v.Reason != seen {
					seen = v.Reason
					j.cause(memberSymptom(v), "%s", v.Reason)
				}
				return fmt.Errorf("etcd member %s: %s", v.Member, v.Reason)
			}
		}
		return nil
	})
	return o, err
}

// memberSymptom is the symptom of a member that is in the way. A learner is in the way because etcd allows only one at a time; a voter,
// because it lost its data.
func memberSymptom(v etcd.Verdict) symptom.ID {
	if v.Member.Learner {
		return symptom.EtcdTooManyLearners
	}
	return symptom.EtcdStaleMember
}

// clearNode deletes an existing Node of this name, if the machine may take the name.
func (j *nodeJoin) clearNode(ctx context.Context) (o join.Outcome, err error) {
	var verdict join.NameVerdict
	look := func(ctx context.Context) error {
		nodes, err := j.Admin.Kube.Nodes(ctx)
		recorded := session.FindNode(nodes, j.node.Name)
		if err != nil || recorded == nil {
			verdict = join.NameVerdict{}
			return err
		}
		renewed, err := j.Admin.Kube.NodeLeaseRenewed(ctx, j.node.Name)
		if err != nil {
			return err // not to know must not look like gone
		}
		machines, err := j.Machines.List(ctx)
		if err != nil {
			return err
		}
		claim := claimOf(j.Session, machines, j.Fact(j.node).MachineID, *recorded, renewed, j.machineID)
		claim.Domains = slices.DeleteFunc(claim.Domains, func(d join.NamedMachine) bool {
			other, _ := j.Cluster.Node(d.Node)
			name := j.Fact(other).Node
			return name != "" && name != recorded.Name // its kubelet has another Node
		})
		verdict = join.JudgeName(claim)
		if verdict.Retry > 0 && (j.stopped || recorded.MachineID == j.Fact(j.node).MachineID) {
			return errors.New(verdict.Reason) // this machine before its reset, which no longer renews the Lease: wait
		}
		return nil
	}
	if err := wait.For(ctx, "the Lease of "+j.node.Name+" to run out", join.AliveFor+5*time.Second, time.Second, look); err != nil {
		return o, err
	}
	switch {
	case verdict.Reason == "":
		return o, nil
	case !verdict.Delete:
		return join.Outcome{Symptom: symptom.NodeNameExists, Phase: join.PhaseCluster, ExitCode: -1, Evidence: verdict.Reason,
			Hint: "another name for this machine in cluster.yaml, or turn the other machine off and delete its Node"}, nil
	}
	j.cause(symptom.NodeNameExists, "deleting the Node: %s", verdict.Reason)
	return o, j.Admin.Kube.DeleteNode(ctx, j.node.Name)
}

var errOnly = errors.New("it is the only control plane, so it cannot be reset and joined again; " +
	"`labctl down` and `labctl up` make a new cluster")

// only tells whether no other control plane is known to have joined.
func (c *Run) only(n config.Node) bool {
	joined := c.JoinedControlPlanes()
	return n.Role == config.ControlPlane && (len(joined) == 0 || len(joined) == 1 && joined[0].Name == n.Name)
}
