package diagnose

import (
	"testing"

	"k8slab/lab/diagnose/fact"
	joining "k8slab/lab/join"
	"k8slab/lab/symptom"
)

// A node of the lab that is in no cluster fails the diagnosis, unless its join is at work.
func TestInNoCluster(t *testing.T) {
	outside := func() (fact.Facts, *fact.Machine) {
		f := healthyFacts(2)
		f.API.Nodes = f.API.Nodes[:4]
		for name := range f.API.DaemonSets {
			f.API.DaemonSets[name] = fact.DaemonSet{Ready: 4, Want: 4}
		}
		m := f.Machine("w2")
		m.Inside = &fact.Node{Time: midday}
		return f, m
	}
	report := func(f fact.Facts) Report {
		t.Helper()
		r, err := NewReport(f)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	f, m := outside()
	if r := report(f); !r.Failed() || len(r.Findings) != 1 || r.Findings[0].Node != "w2" || r.Findings[0].Hint != "labctl join w2" {
		t.Errorf("reset: %+v", r.Findings)
	}
	m.Inside.Facts.Dirty = true
	if r := report(f); !r.Failed() || r.Findings[0].Symptom != symptom.LeftoverState {
		t.Errorf("with leftovers: %+v", r.Findings)
	}
	fail(m, joining.Check{ID: "node-name", Result: joining.Blocked, Symptom: symptom.NodeNameExists, Evidence: "Node w2 exists"})
	if r := report(f); !r.Failed() || r.Findings[0].Symptom != symptom.NodeNameExists {
		t.Errorf("what fails its join comes first: %+v", r.Findings)
	}
	general, _ := symptom.Lookup(symptom.FirewallBlocked)
	for recorded, want := range map[string]string{general.Hint: "delete the rule", "what its end shows": "what its end shows"} {
		f, m = outside()
		m.Inside.Facts.Outcome = &joining.Outcome{Symptom: symptom.FirewallBlocked, Evidence: "it timed out", Finished: true, Hint: recorded,
			Endpoint: "192.0.2.99:6443"}
		fail(m, joining.Check{ID: joining.CheckFirewall, Result: joining.Blocked, Symptom: symptom.FirewallBlocked, Evidence: "dropped",
			Hint: "delete the rule"})
		if r := report(f); len(r.Findings) == 0 || r.Findings[0].Hint != want {
			t.Errorf("the last join said %q: %+v", recorded, r.Findings)
		}
	}
	f, m = outside()
	m.Inside.Facts.Dirty, m.Inside.Facts.JoinUnit = true, "active"
	if r := report(f); r.Failed() {
		t.Errorf("in its join: %+v", r.Findings)
	}
}
