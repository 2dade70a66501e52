package diagnose

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8slab/lab/diagnose/fact"
	"k8slab/lab/etcd"
	"k8slab/lab/event"
	joining "k8slab/lab/join"
	"k8slab/lab/symptom"
)

// learning makes cp3 a learner, of a join that is at work or has ended.
func learning(f *fact.Facts, atWork bool) (*fact.Machine, *fact.Member) {
	m, e := f.Machine("cp3"), &f.Etcd.Members[2]
	e.Learner, e.RaftIndex, e.Rate = true, 900, 120
	m.Inside.Member = nil
	m.Inside.Facts.Joined, m.Inside.Facts.Role = false, ""
	m.Inside.Facts.Outcome = &joining.Outcome{Symptom: symptom.EtcdLearnerNotInSync, Phase: "etcd-join", Evidence: "not in sync"}
	if atWork {
		m.Inside.Facts.JoinUnit = "active"
	}
	return m, e
}

func TestLearnerDetails(t *testing.T) {
	tests := []struct {
		name   string
		atWork bool
		change func(*fact.Facts, *fact.Machine, *fact.Member)
		detail string
		level  symptom.Level
	}{
		{"never started", false, func(_ *fact.Facts, _ *fact.Machine, e *fact.Member) {
			e.Started, e.Name, e.Error = false, "", "no answer"
		}, symptom.NeverStarted, symptom.Fail},
		{"has not started yet", true, func(_ *fact.Facts, _ *fact.Machine, e *fact.Member) {
			e.Started, e.Name, e.Error = false, "", "no answer"
		}, symptom.NeverStarted, symptom.Warn},
		{"peer port", true, func(f *fact.Facts, _ *fact.Machine, _ *fact.Member) { blockPort(f, "cp1", "cp3", 2380) }, symptom.PeerPortBlocked, symptom.Fail},
		{"wrong address, by its name", true, func(_ *fact.Facts, _ *fact.Machine, e *fact.Member) {
			e.PeerURLs = []string{"https://198.51.100.7:2380"}
		}, symptom.WrongAddress, symptom.Fail},
		{"wrong address, by the manifest", true, func(_ *fact.Facts, m *fact.Machine, e *fact.Member) {
			e.PeerURLs, e.Name, e.Started = []string{"https://198.51.100.7:2380"}, "", false
			m.Inside.PeerURL = "https://198.51.100.7:2380"
		}, symptom.WrongAddress, symptom.Fail},
		{"slow disk", true, func(_ *fact.Facts, m *fact.Machine, _ *fact.Member) { m.Inside.Etcd.RecentMedian = 0.25 }, symptom.SlowDisk, symptom.Fail},
		{"catching up", true, func(*fact.Facts, *fact.Machine, *fact.Member) {}, symptom.CatchingUp, symptom.Warn},
		{"receives the database", true, func(_ *fact.Facts, _ *fact.Machine, e *fact.Member) { e.Error = "context deadline exceeded" }, symptom.CatchingUp, symptom.Warn},
		{"does not run", true, func(_ *fact.Facts, m *fact.Machine, e *fact.Member) {
			e.Error, m.Inside.Etcd = "connection refused", nil
		}, symptom.NeverStarted, symptom.Warn},
		{"left while catching up", false, func(*fact.Facts, *fact.Machine, *fact.Member) {}, symptom.CatchingUp, symptom.Fail},
		{"promoted after all", false, func(_ *fact.Facts, _ *fact.Machine, e *fact.Member) { e.Learner = false }, "already-promoted", symptom.Fail},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := healthyFacts(1)
			m, e := learning(&f, tt.atWork)
			tt.change(&f, m, e)
			found := Judge(f)
			i := slices.IndexFunc(found, func(o symptom.Finding) bool { return o.Symptom == symptom.EtcdLearnerNotInSync && o.Detail != "" })
			if i < 0 || found[i].Detail != tt.detail || found[i].Level != tt.level || found[i].Node != "cp3" {
				t.Errorf("%+v", found)
			}
		})
	}
}

// kubeadm was killed after it had added its learner: the learner is what keeps others out, and the rest of what it left is evidence.
func TestAbandonedLearner(t *testing.T) {
	f := healthyFacts(1)
	m, _ := learning(&f, false)
	m.Inside.Facts.Dirty = true
	m.Inside.Facts.Outcome = &joining.Outcome{Phase: "etcd-join", Killed: true, Evidence: "signal: killed"}
	journal(m, "kubelet", time.Minute, `E0301 run.go:72] "command failed" err="failed to run Kubelet: unable to load bootstrap kubeconfig: stat /etc/kubernetes/bootstrap-kubelet.conf: no such file or directory"`)
	found := Judge(f)
	if len(found) != 1 || found[0].Symptom != symptom.EtcdLearnerNotInSync || found[0].Node != "cp3" || len(found[0].Evidence) < 2 {
		t.Errorf("%+v", found)
	}
}

// At rest the machine of a learner that never started is in no cluster, which is no cause of it.
func TestLearnerOfNoMember(t *testing.T) {
	f := healthyFacts(1)
	m, e := learning(&f, false)
	e.Started, e.Error = false, "no answer"
	m.Inside.Facts.Outcome = &joining.Outcome{Joined: true} // it was reset since
	journal(m, "etcd", time.Minute, `{"level":"warn","msg":"peer became inactive","error":"the member has been permanently removed from the cluster"}`)
	found := Judge(f)
	if len(found) != 1 || found[0].Symptom != symptom.EtcdLearnerNotInSync || found[0].Detail != symptom.NeverStarted {
		t.Errorf("%+v", found)
	}
}

// What etcd logged on the machine before its last join was another member's trouble.
func TestTextsOfAnEarlierLife(t *testing.T) {
	corrupt := `{"level":"fatal","msg":"found data inconsistency with peers"}`
	for _, began := range []time.Duration{2 * time.Minute, 4 * time.Minute} {
		f := healthyFacts(1)
		m, _ := learning(&f, false)
		m.Inside.Records = []event.Event{{Time: midday.Add(-began)}}
		journal(m, "etcd", 3*time.Minute, corrupt)
		found := Judge(f)
		told := slices.ContainsFunc(found, func(o symptom.Finding) bool { return o.Symptom == symptom.EtcdDataCorrupt })
		if during := began > 3*time.Minute; told != during {
			t.Errorf("the join began %s ago: %+v", began, found)
		}
	}
}

// A log tells of members that were removed, for minutes: the list decides, also where nobody leads.
func TestTextsOfARemovedMember(t *testing.T) {
	f := healthyFacts(1)
	journal(f.Machine("cp2"), "etcd", time.Minute, `{"level":"warn","msg":"skipped attributes update of removed member","updated-peer-id":"58977eb823d0a919"}`)
	if found := Judge(f); len(found) > 0 {
		t.Errorf("healthy: %+v", found)
	}
	f.Etcd.Quorum = "context deadline exceeded"
	for i := range f.Etcd.Members[:2] {
		f.Etcd.Members[i].Healthy, f.Etcd.Members[i].Error = false, "connection refused"
	}
	f.Machine("cp2").Inside.Member = nil // its own look at its member failed
	if found := Judge(f); len(found) == 0 || found[0].Symptom != symptom.EtcdNoQuorum {
		t.Errorf("without a quorum: %+v", found)
	}
}

// The API server of a control plane is refused while its own member is a learner, as in every join that ends well. Without a learner that is over.
func TestTextsOfALearnerThatVotes(t *testing.T) {
	refused := `{"level":"warn","msg":"retrying of unary invoker failed","error":"rpc error: code = FailedPrecondition desc = etcdserver: rpc not supported for learner"}`
	for _, learner := range []bool{false, true} {
		f := healthyFacts(1)
		f.API.DaemonSets["kube-flannel/flannel"] = fact.DaemonSet{Missing: true, Error: "404"} // it was deleted
		journal(f.Machine("cp3"), "kube-apiserver", time.Minute, refused, time.Minute, refused, time.Minute, refused, time.Minute, refused)
		f.Etcd.Members[2].Learner = learner
		told := slices.ContainsFunc(Judge(f), func(o symptom.Finding) bool {
			return o.Symptom == symptom.EtcdLearnerNotInSync && strings.HasPrefix(o.Evidence[len(o.Evidence)-1].Source, "kube-apiserver")
		})
		if told != learner {
			t.Errorf("learner %v: %+v", learner, Judge(f))
		}
	}
}

func TestPhantomLearner(t *testing.T) {
	f := healthyFacts(1)
	f.Etcd.Members = append(f.Etcd.Members, fact.Member{ID: 9, PeerURLs: []string{"https://198.51.100.42:2380"}, Learner: true, Error: "no answer"})
	found := Judge(f)
	if len(found) != 1 || found[0].Symptom != symptom.EtcdStaleMember || !found[0].Repairable {
		t.Errorf("at rest: %+v", found)
	}
	f.Machine("w1").Inside.Facts = joining.Facts{Outcome: &joining.Outcome{Symptom: symptom.EtcdTooManyLearners, Phase: "etcd-join", Evidence: "too many learners"}}
	found = Judge(f)
	if len(found) == 0 || found[0].Symptom != symptom.EtcdTooManyLearners {
		t.Errorf("met by a join: %+v", found)
	}
}

func TestStaleVoter(t *testing.T) {
	f := healthyFacts(1)
	f.Etcd.Members[2].Healthy, f.Etcd.Members[2].Error = false, "connection refused"
	f.Machine("cp3").Inside = &fact.Node{Time: midday}
	found := Judge(f)
	if len(found) == 0 || found[0].Symptom != symptom.EtcdStaleMember || found[0].Node != "cp3" {
		t.Errorf("%+v", found)
	}
}

// Who answers in a voter's place, and what it knows, tells apart why it does not serve.
func TestVoterStates(t *testing.T) {
	for state, want := range map[etcd.State]symptom.ID{
		etcd.Silent: symptom.EtcdUnreachable, etcd.Displaced: symptom.EtcdMemberMismatch, etcd.Leaderless: symptom.EtcdUnreachable,
	} {
		f := healthyFacts(1)
		f.Etcd.Members[2].Healthy, f.Etcd.Members[2].State, f.Etcd.Members[2].Error = false, state, "it does not serve"
		f.Machine("cp3").Inside.Member = nil // its own look at its member failed, too
		if found := Judge(f); len(found) != 1 || found[0].Symptom != want {
			t.Errorf("%s: %+v", state, found)
		}
	}
	f := healthyFacts(1) // a member that knows no leader is cut off, unless there is none
	f.Etcd.Members[2].Healthy, f.Etcd.Members[2].State, f.Etcd.Quorum = false, etcd.Leaderless, "no answer within 3s"
	f.Machine("cp3").Inside.Member = nil
	if found := Judge(f); len(found) == 0 || found[0].Symptom != symptom.EtcdNoQuorum {
		t.Errorf("without a quorum: %+v", found)
	}
}

// Without a quorum no member can be removed: the members that lost their data are why there is none.
func TestQuorumLost(t *testing.T) {
	f := healthyFacts(1)
	f.Etcd.Quorum = "context deadline exceeded"
	for _, name := range []string{"cp1", "cp2"} {
		e := &f.Etcd.Members[slices.IndexFunc(f.Etcd.Members, func(m fact.Member) bool { return m.Name == name })]
		e.Healthy, e.Leader, e.Error = false, false, "connection refused"
		f.Machine(name).Inside.Facts.EtcdData = false
	}
	found := Judge(f)
	if len(found) == 0 || found[0].Symptom != symptom.EtcdNoQuorum || len(found[0].Evidence) < 3 {
		t.Errorf("%+v", found)
	}
	if slices.ContainsFunc(found, func(o symptom.Finding) bool { return o.Symptom == symptom.EtcdStaleMember }) {
		t.Errorf("a member that nobody can remove is not stale: %+v", found)
	}
}
