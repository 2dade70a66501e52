package diagnose

import (
	"testing"
	"time"

	"k8slab/lab/event"
	joining "k8slab/lab/join"
	"k8slab/lab/symptom"
)

func TestAttempts(t *testing.T) {
	f := healthyFacts(1)
	m := f.Machine("w1")
	at := midday
	say := func(phase string, state event.State, detail string) {
		m.Inside.Records = append(m.Inside.Records, event.Event{Time: at, Node: "w1", Phase: phase, State: state, Detail: detail})
		at = at.Add(2 * time.Second)
	}
	say("preflight", event.Started, "")
	say("preflight", event.Progress, "attempt 1 of 3")
	say("preflight", event.Done, "")
	say("kubeadm", event.Started, "")
	say("kubeadm", event.Failed, "no JWS")
	say("repair", event.Started, "")
	say("repair", event.Done, "")
	say("preflight", event.Started, "")
	say("preflight", event.Progress, "attempt 2 of 3")
	say("preflight", event.Done, "")
	m.Inside.Facts.Outcome = &joining.Outcome{Symptom: symptom.TokenExpiredOrInvalid, Evidence: "no JWS signature"}
	rows := attemptRows(m)
	if len(rows) != 2 || rows[0].Number != 1 || rows[1].Number != 2 || rows[0].Symptom != symptom.TokenExpiredOrInvalid ||
		rows[0].Evidence != "no JWS signature" || len(rows[0].Phases) != 3 || rows[0].Phases[1].Elapsed != 2 || rows[0].Phases[1].At != 6 {
		t.Errorf("%+v", rows)
	}
	m.Inside.Facts.Outcome = &joining.Outcome{Joined: true}
	if rows = attemptRows(m); !rows[1].Joined || rows[0].Joined || rows[0].Evidence != "no JWS" {
		t.Errorf("%+v", rows)
	}
}

func TestRows(t *testing.T) {
	f := healthyFacts(1)
	f.Etcd.Members[2].RaftIndex = 4000
	r, err := NewReport(f)
	if err != nil || !r.Healthy || r.Failed() {
		t.Fatal(r, err)
	}
	if n := r.Nodes[0]; n.Name != "cp1" || n.Ready != "True" || n.Kubelet != "active" || n.Runtime != "fine" || n.DiskFree != 0.8 || n.FsyncP99 != 0.032 {
		t.Errorf("%+v", n)
	}
	if m := r.Members[2]; m.Node != "cp3" || m.Behind != 1000 || m.ID != "66" {
		t.Errorf("%+v", m)
	}
	if len(r.Ports) == 0 {
		t.Error("no ports")
	}
}
