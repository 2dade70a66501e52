package etcd

import (
	"fmt"
	"slices"
)

// Fact is something about a machine that may be unknown, because the machine cannot be asked. An unknown fact never leads to a removal.
type Fact int

// The values of a Fact.
const (
	Unknown Fact = iota
	No
	Yes
)

// Machine is what is known of the machine that a peer URL belongs to.
type Machine struct {
	Name    string
	PeerURL string // https://IP:2380
	Joining Fact   // kubeadm join is at work on it, or another process is about to start one
	Data    Fact   // its data directory has an etcd member's data
}

// Action is what to do about a member.
type Action string

// The actions.
const (
	Keep   Action = "keep"   // leave it: it is nobody's obstacle
	Remove Action = "remove" // remove it, then look again
	Wait   Action = "wait"   // a join may need it
	Stop   Action = "stop"   // it is in the way and must not be removed
)

// Verdict is what to do about one member, and why.
type Verdict struct {
	Member  Member
	Machine string // whose peer URL it has, "" if no machine's
	Action  Action
	Reason  string // a clause without the member's name
}

// Judge says of every member what has to happen before the machine named joiner joins as a control plane; with an empty joiner, at rest.
// The machines are all that could own a member. It is the decision table of the facts that kubeadm skips adding a member whose peer URL is
// listed whatever that member is, that etcd takes one learner at a time, that a member which starts with its ID but without its log panics,
// and that removing a learner between its addition and its promotion fails its join (kubernetes/kubernetes#127491,
// kubernetes-sigs/cluster-api#14197, etcd-io/etcd#20269).
func Judge(statuses []Status, machines []Machine, joiner string) []Verdict {
	verdicts := make([]Verdict, 0, len(statuses))
	for _, s := range statuses {
		m := ownerOf(s.Member, machines)
		own := m != nil && m.Name == joiner
		v := Verdict{Member: s.Member}
		if m != nil {
			v.Machine = m.Name
		}
		if s.Member.Learner {
			v.Action, v.Reason = judgeLearner(m)
		} else {
			v.Action, v.Reason = judgeVoter(s, m, own)
		}
		if v.Action == Remove {
			if err := QuorumAfterRemoval(statuses, s.Member.ID); err != nil {
				v.Action, v.Reason = Stop, fmt.Sprintf("%s, but %v", v.Reason, err)
			}
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}

func ownerOf(member Member, machines []Machine) *Machine {
	for i, m := range machines {
		if slices.Contains(member.PeerURLs, m.PeerURL) {
			return &machines[i]
		}
	}
	return nil
}

// judgeLearner removes every learner that nobody is about to promote, the joiner's own too. kubeadm would go on with its own when that has
// never started; but until then etcd is not healthy, and whether it has started, and with which data, only its machine knows.
func judgeLearner(m *Machine) (Action, string) {
	switch {
	case m == nil:
		return Remove, "no machine of the lab has its peer URL, and etcd takes one learner at a time"
	case m.Joining == Yes:
		return Wait, "a join is at work on " + m.Name + ", which fails if its learner is removed"
	case m.Joining == Unknown:
		return Wait, m.Name + " does not say whether a join is at work on it"
	}
	return Remove, "no join is at work on " + m.Name + " that would promote it, and etcd takes one learner at a time"
}

func judgeVoter(s Status, m *Machine, own bool) (Action, string) {
	switch {
	case !own:
		return Keep, "it votes, and is never removed for another machine's join"
	case m.Data == Yes:
		return Keep, m.Name + " still has its data"
	case m.Data == Unknown:
		return Stop, m.Name + " does not say whether it still has this voter's data"
	case s.Healthy:
		return Stop, "it answers, though " + m.Name + " has none of its data: another machine may have this address"
	case m.Joining == Yes:
		return Wait, "a join is at work on " + m.Name
	case m.Joining == Unknown:
		return Wait, m.Name + " does not say whether a join is at work on it"
	}
	return Remove, m.Name + " has lost what this voter had stored: started again with an empty log it would panic"
}

// NextRemoval picks the one member to remove in this pass, or nil: a learner before a voter, because it costs no quorum.
func NextRemoval(verdicts []Verdict) *Verdict {
	var next *Verdict
	for i, v := range verdicts {
		if v.Action == Remove && (next == nil || v.Member.Learner && !next.Member.Learner) {
			next = &verdicts[i]
		}
	}
	return next
}
