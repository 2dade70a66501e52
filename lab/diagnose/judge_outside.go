package diagnose

import (
	"fmt"
	"slices"

	"k8slab/lab/diagnose/fact"
	joining "k8slab/lab/join"
	"k8slab/lab/symptom"
)

// outside judges a machine that is in no cluster. The record of its last join says why, unless that cause is gone.
func (j *judgement) outside(m *fact.Machine) {
	facts := m.Inside.Facts
	if facts.Running() || joined(m) {
		return
	}
	next := "labctl join " + m.Name
	if !j.cluster() {
		next = "labctl up"
	}
	if facts.KubeadmUnit == "failed" { // kubeadm init
		if found := j.judged(m, "k8slab-kubeadm"); len(found) > 0 {
			for _, f := range found {
				j.add(f)
			}
			return
		}
	}
	o := facts.Outcome
	if o == nil || o.Joined {
		id, text := symptom.KubeletConfigMissing, "it is in no cluster, and no join of it has been tried"
		if facts.Dirty {
			id, text = symptom.LeftoverState, "it is in no cluster, and something of an init or a join is on it"
		}
		f := j.find(id, m.Name, "labnode", text)
		f.Hint, f.Repairable = next, j.cluster()
		j.unjoined = append(j.unjoined, spotOf(*f))
		return
	}
	id := o.Symptom
	if id == "" && o.Finished { // what a kubeadm that was killed had said is no cause
		id = specific(o.Output+"\n"+o.Evidence, "")
	}
	said := fmt.Sprintf("the last join ended in %s: %s", o.Phase, o.Evidence)
	if id == symptom.EtcdLearnerNotInSync && j.votes(m) {
		f := j.findKind(id, "already-promoted", m.Name, "join", said+"; its etcd member votes now")
		f.Repairable = true // by the join
		f.Hint = "its member was promoted after all: " + next + " goes on, and removes the member first if its data is gone"
		return
	}
	if id == "" || j.over(m, id) {
		text := said
		if id != "" {
			text += fmt.Sprintf("; %s no longer holds", id)
		}
		left := symptom.KubeletConfigMissing
		if facts.Dirty {
			left = symptom.LeftoverState
		}
		f := j.find(left, m.Name, "join", text)
		f.Hint, f.Repairable = next, true
		return
	}
	f := j.find(id, m.Name, "join", said)
	// What is known of the cause in general says less than a check of now.
	if general, _ := symptom.Lookup(id); o.Hint != "" && o.Hint != general.Hint {
		f.Hint = o.Hint
	}
	f.Repairable = joining.Remedy(id) != joining.Stop
}

// behind makes "in no cluster" a warning where the machine, which nobody tried to join yet, or the whole cluster has a worse problem.
func (j *judgement) behind() {
	for _, at := range j.unjoined {
		worse := j.any(func(f symptom.Finding) bool {
			return f.Level == symptom.Fail && spotOf(f) != at && (f.Node == at.node || f.Node == "")
		})
		for i, c := range j.found {
			if worse && spotOf(c.Finding) == at && j.mayChange(c) {
				j.found[i].Level = symptom.Warn
			}
		}
	}
}

// wayCauses are about the way to one API server. Checks of the way to another address prove nothing about them.
var wayCauses = []symptom.ID{symptom.DNSResolutionFailure, symptom.APIServerUnreachable, symptom.ProxyInterference, symptom.FirewallBlocked}

// over reports whether the cause of the last join's failure is gone.
func (j *judgement) over(m *fact.Machine, id symptom.ID) bool {
	elsewhere := m.Inside.Facts.Outcome.Endpoint
	if slices.Contains(wayCauses, id) && elsewhere != "" && elsewhere != j.f.Endpoint {
		return false
	}
	return j.refutes(m, id)
}

// unfinished reports whether kubeadm started on the machine and never ended. What it left behind can look like a member.
func unfinished(m *fact.Machine) bool {
	o := m.Inside.Facts.Outcome
	return !m.Inside.Facts.Joined && o != nil && !o.Joined && !o.Phase.WithoutKubeadm()
}

// abandoned reports whether the last join was killed, or the machine was reset since. Then that is the reason, and no log of the machine
// has a better one.
func abandoned(m *fact.Machine) bool {
	o := m.Inside.Facts.Outcome
	return !m.Inside.Facts.Joined && !m.Inside.Facts.Running() && (o == nil || o.Joined || !o.Finished && o.Symptom == "")
}

// atWork judges a join or an init that runs: what kubeadm says of it until now.
func (j *judgement) atWork(m *fact.Machine) {
	if !m.Inside.Facts.Running() {
		return
	}
	for _, name := range []string{"kubeadm", "k8slab-kubeadm"} {
		for _, f := range j.judged(m, name) {
			if f.Level == symptom.Fail && f.BecauseOf == "" && !j.refutes(m, f.Symptom) {
				j.add(f)
			}
		}
	}
}

// votes reports whether etcd lists the machine's member as a voter.
func (j *judgement) votes(m *fact.Machine) bool {
	return slices.ContainsFunc(j.f.Etcd.Members, func(e fact.Member) bool { return !e.Learner && slices.Contains(e.PeerURLs, peerURL(m)) })
}
