package diagnose

import (
	"strings"
	"testing"

	joining "k8slab/lab/join"
	"k8slab/lab/symptom"
)

// toneIn is the tone of a node's cell with that label.
func toneIn(t *testing.T, r Report, node, label string) string {
	t.Helper()
	for _, n := range nodeViews(r) {
		for _, c := range n.Cells {
			if n.Name == node && c.Label == label {
				return c.Tone
			}
		}
	}
	t.Fatalf("no cell %s of %s", label, node)
	return ""
}

// What nothing is wrong with has no colour of trouble, whatever its check says in words.
func TestHealthyNodesLookHealthy(t *testing.T) {
	f := healthyFacts(2) // whose fsync is 32 ms in all, and right
	for i := range f.Machines {
		m := f.Machines[i].Inside
		for k, c := range m.Checks {
			if c.ID == "cri" {
				m.Checks[k].Evidence = "containerd v2.4.2 answers on /run/containerd/containerd.sock"
			}
		}
	}
	r, err := NewReport(f)
	if err != nil || !r.Healthy {
		t.Fatal(err, r.Findings)
	}
	for _, n := range nodeViews(r) {
		for _, c := range n.Cells {
			if c.Tone != "" {
				t.Errorf("%s: %s is %s: %q", n.Name, c.Label, c.Tone, c.Text)
			}
		}
	}
	if page := pageOf(t, r); strings.Contains(page, `class="mark"`) {
		t.Error("the page marks something")
	}
}

func TestRuntimeCellGoesByTheResult(t *testing.T) {
	for result, want := range map[joining.Result]string{joining.OK: "", joining.Warn: "warn", joining.Fixable: "bad", joining.Blocked: "bad", "": ""} {
		// The words say the opposite.
		if got := runtimeCell(NodeRow{Runtime: "ready", RuntimeResult: string(result)}).Tone; got != want {
			t.Errorf("%q: %q, want %q", result, got, want)
		}
	}
}

// A measure has the tone of the finding that it stands behind.
func TestMeasuresHaveTheFindingsTone(t *testing.T) {
	for label, cause := range map[string]symptom.ID{
		"Clock": symptom.ClockSkew, "Disk free": symptom.DiskFull, "Memory free": symptom.OutOfMemory, "fsync 99 %": symptom.EtcdSlow,
	} {
		r := healthyReport()
		r.Findings = []symptom.Finding{found(cause, "cp2", "")}
		if got := toneIn(t, r, "cp2", label) + toneIn(t, r, "cp1", label); got != "bad" {
			t.Errorf("%s: %q, want it bad on cp2 alone", label, got)
		}
		r.Findings[0].Level = symptom.Warn
		if got := toneIn(t, r, "cp2", label); got != "warn" {
			t.Errorf("%s: %q, want a warning", label, got)
		}
	}
}

// Of an API server that does not answer nobody knows which Nodes there are.
func TestReadyIsUnknownWithoutTheAPIServer(t *testing.T) {
	r := healthyReport()
	r.Nodes[1].Ready = ""
	if got := toneIn(t, r, "cp2", "Ready"); got != "bad" {
		t.Errorf("no Node: %q", got)
	}
	for i := range r.Nodes {
		r.Nodes[i].Ready = ""
	}
	if got := toneIn(t, r, "cp2", "Ready"); got != "" {
		t.Errorf("nobody was asked: %q", got)
	}
}
