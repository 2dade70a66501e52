package diagnose

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"k8slab/lab/diagnose/fact"
	"k8slab/lab/etcd"
	"k8slab/lab/symptom"
)

func peerURL(m *fact.Machine) string { return "https://" + net.JoinHostPort(m.IP, "2380") }

// etcd judges the members, each by the decision table of lab/etcd.
func (j *judgement) etcd() {
	e := j.f.Etcd
	if e.Error != "" {
		// Members that do not answer themselves are the nearer word for it.
		if e.Via != "" && !j.any(func(f symptom.Finding) bool { return f.Symptom == symptom.EtcdUnreachable }) {
			j.find(symptom.EtcdUnreachable, "", "etcd", e.Error)
		}
		return
	}
	if e.Quorum != "" {
		j.find(symptom.EtcdNoQuorum, "", "etcd", e.Quorum)
	}
	verdicts := etcd.Judge(statuses(e.Members), j.etcdMachines(), "")
	for i, v := range verdicts {
		m := e.Members[i]
		owner := j.machines[v.Machine]
		if m.Learner {
			j.learner(m, v, owner)
		} else {
			j.voter(m, owner)
		}
		for _, alarm := range m.Alarms {
			id := symptom.EtcdDataCorrupt
			if alarm == "NOSPACE" {
				id = symptom.DiskFull
			}
			j.find(id, v.Machine, "etcd", fmt.Sprintf("member %s has the alarm %s", v.Member, alarm))
		}
	}
	j.unlisted()
}

func statuses(members []fact.Member) []etcd.Status {
	all := make([]etcd.Status, 0, len(members))
	for _, m := range members {
		s := etcd.Status{
			Member:  etcd.Member{ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs, Learner: m.Learner, Started: m.Started},
			Healthy: m.Healthy, Leader: m.Leader, LeaderID: m.LeaderID, RaftIndex: m.RaftIndex,
		}
		if m.Error != "" {
			s.Err = errors.New(m.Error)
		}
		all = append(all, s)
	}
	return all
}

// etcdMachines says of every control plane what its member is judged by.
func (j *judgement) etcdMachines() []etcd.Machine {
	var all []etcd.Machine
	for i := range j.f.Machines {
		m := &j.f.Machines[i]
		if m.Role != roleControlPlane {
			continue
		}
		e := etcd.Machine{Name: m.Name, PeerURL: peerURL(m)}
		switch {
		case m.Inside != nil && m.Inside.Errors["facts"] == "":
			e.Joining, e.Data = yes(m.Inside.Facts.Running()), yes(m.Inside.Facts.EtcdData)
		case m.State == "off" || m.State == "crashed" || m.State == "absent":
			e.Joining = etcd.No
		}
		all = append(all, e)
	}
	return all
}

func yes(b bool) etcd.Fact {
	if b {
		return etcd.Yes
	}
	return etcd.No
}

var learnerHints = map[string]string{
	symptom.NeverStarted: "its etcd never started: on its machine crictl ps -a --name etcd; crictl logs CONTAINER; journalctl -u kubelet; " +
		"when no join is at work: labctl etcd clean-learners",
	symptom.PeerPortBlocked: "open TCP 2380 between the control planes in both directions; then labctl rejoin NODE",
	symptom.WrongAddress: "it was added under an address that is not its machine's: set localAPIEndpoint.advertiseAddress " +
		"(--apiserver-advertise-address), then labctl etcd clean-learners and labctl rejoin NODE",
	symptom.SlowDisk: "give /var/lib/etcd a faster disk, or its machine less to do; then labctl rejoin NODE",
	symptom.CatchingUp: "wait while its raft index grows (labctl etcd members); when no join is at work any more: " +
		"labctl etcd clean-learners, then labctl join NODE",
}

// learner judges a member that does not vote. While its machine is joining, that is only a warning: it may vote in a moment.
func (j *judgement) learner(m fact.Member, v etcd.Verdict, owner *fact.Machine) {
	detail, why := j.learnerDetail(m, &owner)
	text := "learner " + memberText(m) + ": " + why
	if owner == nil {
		id := symptom.EtcdStaleMember
		if slices.ContainsFunc(j.f.Machines, func(m fact.Machine) bool { return metLearner(&m) }) {
			id = symptom.EtcdTooManyLearners
		}
		f := j.find(id, "", "etcd", "learner "+memberText(m)+": "+v.Reason)
		f.Repairable = v.Action == etcd.Remove
		return
	}
	// etcd's members know more about the learner than kubeadm's output does.
	j.takeBack(func(o symptom.Finding) bool { return o.Symptom == symptom.EtcdLearnerNotInSync && o.Node == owner.Name })
	left := j.left(owner.Name)
	f := j.findKind(symptom.EtcdLearnerNotInSync, detail, owner.Name, "etcd", text)
	f.Hint = strings.ReplaceAll(learnerHints[detail], "NODE", owner.Name)
	f.Repairable = v.Action == etcd.Remove
	f.Evidence = append(f.Evidence, left...)
	if v.Action == etcd.Wait && (detail == symptom.CatchingUp || detail == symptom.NeverStarted) {
		f.Level = symptom.Warn
	}
}

// left takes back the findings "in no cluster" and "leftovers" of a node whose learner explains them, and returns their evidence.
func (j *judgement) left(node string) (evidence []symptom.Evidence) {
	for _, o := range j.takeBack(func(o symptom.Finding) bool {
		return o.Node == node && (o.Symptom == symptom.LeftoverState || o.Symptom == symptom.KubeletConfigMissing)
	}) {
		evidence = append(evidence, o.Evidence...)
	}
	return evidence
}

// metLearner reports whether a join on the machine may be or was refused because of a learner. Without such a join, a foreign learner is
// only stale.
func metLearner(m *fact.Machine) bool {
	if m.Inside == nil {
		return false
	}
	o := m.Inside.Facts.Outcome
	return m.Inside.Facts.Running() || o != nil && !o.Joined && o.Symptom == symptom.EtcdTooManyLearners
}

// learnerDetail says which kind of trouble a learner has. If its address is no machine's, its name or a machine's manifest may tell whose
// it is.
func (j *judgement) learnerDetail(m fact.Member, owner **fact.Machine) (detail, why string) {
	if *owner == nil {
		if *owner = j.claimant(m); *owner != nil {
			return symptom.WrongAddress, fmt.Sprintf("it is %s's, whose address is %s", (*owner).Name, (*owner).IP)
		}
		return "", ""
	}
	o := *owner
	if blocked := j.peerBlocked(o); blocked != "" {
		return symptom.PeerPortBlocked, blocked
	}
	switch {
	case !m.Started:
		return symptom.NeverStarted, "it was added and has never started"
	case o.Inside != nil && slow(o.Inside.Etcd):
		return symptom.SlowDisk, fmt.Sprintf("the usual write to its log takes %.0f ms or more", o.Inside.Etcd.RecentMedian*1000)
	case m.Error != "" && o.Inside != nil && o.Inside.Etcd != nil: // it answers on its own machine
		return symptom.CatchingUp, "it runs and does not serve yet, as while it receives the database: " + m.Error
	case m.Error != "":
		return symptom.NeverStarted, "it does not run now: " + m.Error
	}
	return symptom.CatchingUp, fmt.Sprintf("raft index %d of %d, %.0f entries a second", m.RaftIndex, j.leaderIndex(), m.Rate)
}

func (j *judgement) leaderIndex() uint64 {
	for _, m := range j.f.Etcd.Members {
		if m.Leader {
			return m.RaftIndex
		}
	}
	return 0
}

// claimant is the machine to which a learner with a foreign address belongs, nil when there is none.
func (j *judgement) claimant(m fact.Member) *fact.Machine {
	for i := range j.f.Machines {
		o := &j.f.Machines[i]
		if o.Role != roleControlPlane {
			continue
		}
		named := m.Name != "" && m.Name == o.Name
		manifested := o.Inside != nil && o.Inside.PeerURL != "" && slices.Contains(m.PeerURLs, o.Inside.PeerURL)
		if named || manifested || hasAddress(o, m.PeerURLs) {
			return o
		}
	}
	return nil
}

// hasAddress reports whether the machine has the address of one of the URLs on some other interface of its own.
func hasAddress(m *fact.Machine, urls []string) bool {
	if m.Inside == nil {
		return false
	}
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil {
			continue
		}
		for _, l := range m.Inside.Links {
			for _, a := range l.Addresses {
				// A pod network's gateway can have the same address on every node, and loopback has: they prove nothing.
				p, err := netip.ParsePrefix(a)
				if err == nil && p.Addr().String() == u.Hostname() && !p.Addr().IsLoopback() && l.Name != "cni0" {
					return true
				}
			}
		}
	}
	return false
}

// peerBlocked describes the first dial to etcd's peer port, from or to the machine, that got no answer; "" for none.
func (j *judgement) peerBlocked(m *fact.Machine) string {
	for i := range j.f.Machines {
		from := &j.f.Machines[i]
		if silent(from) || from.Inside == nil {
			continue
		}
		for _, d := range from.Inside.Dials {
			if d.Port == 2380 && j.lost(d) && (from.Name == m.Name || d.To == m.Name) {
				return fmt.Sprintf("%s → %s:2380: %s", from.Name, d.To, d.Result)
			}
		}
	}
	return ""
}

// memberText is how people read a member: its name, where it has one, its ID and its address.
func memberText(m fact.Member) string {
	return strings.TrimSpace(fmt.Sprintf("%s %x at %s", m.Name, m.ID, strings.Join(m.PeerURLs, ",")))
}

// voter judges a member that votes.
func (j *judgement) voter(m fact.Member, owner *fact.Machine) {
	who := "member " + memberText(m)
	switch {
	case m.Healthy:
	case owner == nil && j.f.Part: // it may be a machine's that was not asked
	case owner == nil:
		j.find(symptom.EtcdStaleMember, "", "etcd", who+" belongs to no machine of the lab: "+m.Error)
	case !silent(owner) && owner.Inside != nil && owner.Inside.Errors["facts"] == "" && !owner.Inside.Facts.EtcdData && !owner.Inside.Facts.Running():
		text := who + " votes, and its machine has none of its data: " + m.Error
		if j.f.Etcd.Quorum != "" { // without a quorum it cannot be removed: the lost quorum is the finding
			j.find(symptom.EtcdNoQuorum, "", "etcd", text)
			return
		}
		j.find(symptom.EtcdStaleMember, owner.Name, "etcd", text)
	case m.State == etcd.Displaced:
		j.find(symptom.EtcdMemberMismatch, owner.Name, "etcd", who+": "+m.Error)
	case m.State == etcd.Leaderless && j.f.Etcd.Quorum != "": // with a quorum elsewhere it is only cut off
		j.find(symptom.EtcdNoQuorum, "", "etcd", who+": "+m.Error)
	default:
		j.find(symptom.EtcdUnreachable, owner.Name, "etcd", who+": "+m.Error)
	}
}

// unlisted are control planes that run an etcd which the cluster does not know.
func (j *judgement) unlisted() {
	if j.f.Etcd.Quorum != "" || len(j.f.Etcd.Members) == 0 {
		return
	}
	for i := range j.f.Machines {
		m := &j.f.Machines[i]
		if silent(m) || !joined(m) || m.Inside.Facts.Running() || !m.Inside.Facts.EtcdManifest {
			continue
		}
		if !slices.ContainsFunc(j.f.Etcd.Members, func(e fact.Member) bool { return slices.Contains(e.PeerURLs, peerURL(m)) || e.Name == m.Name }) {
			j.find(symptom.EtcdMemberMismatch, m.Name, "etcd", "it runs an etcd that the cluster's list of members does not have")
		}
	}
}
