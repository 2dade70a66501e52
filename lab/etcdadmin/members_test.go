package etcdadmin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8slab/lab/etcd"
	"k8slab/lab/labtest"
	"k8slab/lab/machine"
	"k8slab/lab/session"
)

func TestEtcdStatus(t *testing.T) {
	s := labtest.Session(t, labtest.Three)
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	status := func(id uint64, node, role string, index uint64) etcd.Status {
		m := etcd.Member{ID: id, Name: node, Started: true, Learner: role == "learner", PeerURLs: []string{session.PeerURL(labtest.Node(t, s.Lab, node))}}
		return etcd.Status{Member: m, Healthy: true, Leader: role == "leader", LeaderID: 0xa1, RaftIndex: index, DBSize: 4096}
	}
	leader, voter, learner := status(0xa1, "cp1", "leader", 100), status(0xb2, "cp2", "voter", 99), status(0xc3, "cp3", "learner", 20)
	phantom := etcd.Status{Member: etcd.Member{ID: 0xd4, Learner: true, PeerURLs: []string{"https://192.0.2.42:2380"}}, Err: errors.New("has not started")}
	alarmed := voter
	alarmed.Alarms, alarmed.Errors = []string{"NOSPACE"}, []string{"memberID:178 alarm:NOSPACE"}
	dead := voter
	dead.Healthy, dead.Err = false, errors.New("no answer")
	at := func(all ...etcd.Status) etcd.Sample { return etcd.Sample{At: begin, Statuses: all} }

	got := statusOf(s, at(leader, voter), at(leader, voter))
	if !got.Healthy || !got.Quorum || len(got.Problems) > 0 || got.Members[0].Role != "leader" || got.Members[1].Role != "voter" ||
		got.Members[0].ID != "a1" || got.Members[1].Node != "cp2" || got.Members[1].RaftIndex != 99 || got.Members[0].DBSize != 4096 || !got.Members[0].Healthy {
		t.Errorf("healthy: %+v", got)
	}
	later := etcd.Sample{At: begin.Add(2 * time.Second), Statuses: []etcd.Status{leader, voter, status(0xc3, "cp3", "learner", 60)}}
	got = statusOf(s, at(leader, voter, learner), later)
	if got.Healthy || got.Members[2].Role != "learner" || got.Members[2].Progress != "cp3 (c3) has 60 of 100 raft entries (60%), 20/s" {
		t.Errorf("learner: %+v", got)
	}
	got = statusOf(s, at(), at(leader, alarmed, phantom))
	if got.Healthy || !got.Quorum || got.Members[2].Node != "" || got.Members[2].Started || got.Members[2].Problem != "has not started" ||
		len(got.Members[1].Alarms) != 1 || got.Members[2].Progress != "" || len(got.Problems) != 3 {
		t.Errorf("phantom and alarm: %+v", got)
	}
	got = statusOf(s, at(), at(leader, dead))
	if got.Quorum || got.Healthy || !strings.Contains(strings.Join(got.Problems, "\n"), "labctl etcd snapshot restore") {
		t.Errorf("no quorum: %+v", got)
	}
}

func TestMemberVerdicts(t *testing.T) {
	verdict := func(id uint64, action etcd.Action) etcd.Verdict {
		return etcd.Verdict{Member: etcd.Member{ID: id, Learner: true, PeerURLs: []string{"https://a:2380"}}, Machine: "cp3", Action: action, Reason: "why"}
	}
	got := Verdicts([]etcd.Verdict{verdict(0xd4, etcd.Remove)}, []etcd.Verdict{verdict(0xe5, etcd.Remove), verdict(1, etcd.Wait)})
	if len(got) != 3 || !got[0].Removed || got[1].Removed || got[2].Removed {
		t.Fatalf("got %+v", got)
	}
	want := Verdict{ID: "d4", Node: "cp3", PeerURL: "https://a:2380", Learner: true, Action: etcd.Remove, Removed: true, Reason: "why"}
	if got[0] != want {
		t.Errorf("got %+v, want %+v", got[0], want)
	}
}

// answers are what a machine says to a question that begins with the key; to others it does not answer.
type answers map[string]string

func (a answers) Read(_ context.Context, argv ...string) (string, error) {
	out, ok := a[argv[0]]
	if !ok {
		return "", errors.New("connection lost")
	}
	return out, nil
}

func TestAskEtcdMachine(t *testing.T) {
	tests := []struct {
		name          string
		answers       answers
		joining, data etcd.Fact
	}{
		{"idle and empty", answers{"systemctl": "inactive\n", "find": ""}, etcd.No, etcd.No},
		{"joined", answers{"systemctl": "inactive\n", "find": "/var/lib/etcd/member\n"}, etcd.No, etcd.Yes},
		{"its join failed", answers{"systemctl": "failed\n", "find": ""}, etcd.No, etcd.No},
		{"a oneshot unit at work", answers{"systemctl": "activating\n", "find": ""}, etcd.Yes, etcd.No},
		{"a unit at work", answers{"systemctl": "active\n", "find": ""}, etcd.Yes, etcd.No},
		{"a unit that ends", answers{"systemctl": "deactivating\n", "find": ""}, etcd.Yes, etcd.No},
		{"systemd says nothing", answers{"systemctl": "\n", "find": ""}, etcd.Unknown, etcd.No},
		{"lost in between", answers{"systemctl": "inactive\n"}, etcd.No, etcd.Unknown},
		{"silent", answers{}, etcd.Unknown, etcd.Unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if joining, data := askEtcdMachine(t.Context(), tt.answers); joining != tt.joining || data != tt.data {
				t.Errorf("got %v and %v, want %v and %v", joining, data, tt.joining, tt.data)
			}
		})
	}
}

func TestJoiningWithout(t *testing.T) {
	for state, want := range map[machine.State]etcd.Fact{
		machine.Absent: etcd.No, machine.Off: etcd.No, machine.Crashed: etcd.No, machine.Paused: etcd.Unknown, machine.Running: etcd.Unknown,
	} {
		if got := joiningWithout(state); got != want {
			t.Errorf("%s: got %v, want %v", state, got, want)
		}
	}
}
