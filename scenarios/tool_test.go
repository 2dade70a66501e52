package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8slab/lab/symptom"
)

func TestReadAnswer(t *testing.T) {
	for _, tt := range []struct {
		out, want, fails string
	}{
		{"", "  ", ""},
		{"cni-not-initialized\n", "cni-not-initialized  ", ""},
		{`{"cause": "cni-not-initialized", "node": "w1", "evidence": "no file\n in /etc"}`, "cni-not-initialized w1 no file in /etc", ""},
		{`{"cause": "", "node": "", "more": 1}`, "  ", ""},
		{"the network\n", "", `"the network" is no cause`},
		{"first\nsecond\n", "", "neither a JSON object nor one line"},
		{`{"cause": 3}`, "", "not a JSON object of strings"},
		{`{"cause": "disk-full"`, "", "not a JSON object of strings"},
		{`{"cause": "disk-full", "evidence": "` + strings.Repeat("ü", 400) + `"}`, "disk-full  " + strings.Repeat("ü", longestAnswer/2), ""},
	} {
		got, err := ReadAnswer(tt.out)
		if text := fmt.Sprint(got.Cause, " ", got.Node, " ", got.Evidence); err == nil && (tt.fails != "" || text != tt.want) ||
			err != nil && (tt.fails == "" || !strings.Contains(err.Error(), tt.fails)) {
			t.Errorf("%.60q: got %q, %v", tt.out, text, err)
		}
	}
}

// phases is a tool that answers and repairs as it is told.
type phases struct {
	answer  string
	repairs func() error
	asked   []Phase
}

func (p *phases) run(_ context.Context, phase Phase) (string, error) {
	p.asked = append(p.asked, phase)
	time.Sleep(time.Second) // of the bubble
	if phase == Diagnose {
		return p.answer, nil
	}
	return "", p.repairs()
}

// A tool is measured by what labctl is measured by, and labctl itself does nothing unless the tool leaves the lab broken.
func TestExperimentWithATool(t *testing.T) {
	const cni = symptom.CNINotInitialized
	right := `{"cause": "cni-not-initialized", "node": "w1"}`
	for _, tt := range []struct {
		name, answer          string
		repairs               func(m *model) error
		class                 Class
		rightCause, rightNode bool
		repaired, restored    bool
		toRecover             float64
		reason, calls         string
	}{
		{"names and repairs", right, func(m *model) error { clear(m.on); return nil }, Passed, true, true, true, false, 1, "", "[]"},
		{"names another node", `{"cause": "cni-not-initialized", "node": "w2"}`, func(m *model) error { clear(m.on); return nil }, Failed, true, false, true, false, 1,
			"it named cni-not-initialized on w2; right is cni-not-initialized on w1", "[]"},
		{"names no node", "cni-not-initialized", func(m *model) error { clear(m.on); return nil }, Failed, true, false, true, false, 1, "right is cni-not-initialized on w1", "[]"},
		{"finds nothing and says that it repairs nothing", "", func(*model) error { return errors.New("exit status 3") }, Failed, false, false, false, true, 0,
			"it named nothing; right is cni-not-initialized on w1; it did not repair: exit status 3", "[repair up]"},
		{"says nonsense", "it is DNS", func(m *model) error { clear(m.on); return nil }, Failed, false, false, true, false, 1, `it named no cause: "it is DNS" is no cause`, "[]"},
		{"only says that it has repaired", right, func(*model) error { return nil }, Failed, true, true, false, true, 0, "a healthy lab: 4m0s budget ran out", "[repair up]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newModel(t)
				tool := &phases{answer: tt.answer, repairs: func() error { return tt.repairs(m) }}
				r := Round{{m.breaks("a", cni, repair), "w1"}}.Run(t.Context(), m, Options{Tool: &Tool{Name: "doctor", Run: tool.run}})
				if r.Class != tt.class || r.Detected.RightCause != tt.rightCause || r.Detected.RightNode != tt.rightNode || r.Repaired != tt.repaired ||
					r.Restored != tt.restored || r.ToCause != 1 || r.ToRecover != tt.toRecover {
					t.Errorf("got %+v", r)
				}
				if !strings.Contains(r.Reason, tt.reason) || (r.Reason == "") != (tt.reason == "") || fmt.Sprint(m.calls) != tt.calls {
					t.Errorf("reason %q, labctl %s", r.Reason, m.calls)
				}
				if r.Detected.By != "doctor" || !slices.Equal(r.Recovery, []string{"doctor"}) || !slices.Equal(tool.asked, []Phase{Diagnose, Mend}) {
					t.Errorf("by %q, recovery %q, asked %q", r.Detected.By, r.Recovery, tool.asked)
				}
				if r.Data.Lost == nil || r.Data.LostWrites == nil || *r.Data.LostWrites != 0 || r.Data.Writes == 0 {
					t.Errorf("data %+v", r.Data)
				}
			})
		})
	}
}

// forgetful is a lab whose etcd refuses writes for a while and then has an older state.
type forgetful struct {
	*model
	begun time.Time
}

func (f forgetful) Run(ctx context.Context, node string, argv ...string) (string, error) {
	switch since := time.Since(f.begun); {
	case slices.Contains(argv, "--print-value-only"):
		return "3\n", nil
	case slices.Contains(argv, "put") && since > 10*time.Second && since < 14*time.Second:
		return "", errors.New("no leader")
	}
	return f.model.Run(ctx, node, argv...)
}

// What etcd acknowledged and does not have is counted, and the time without a write is measured.
func TestLostWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(t)
		begun := time.Now()
		f := m.breaks("a", symptom.CNINotInitialized, repair)
		f.Effect = func(context.Context, Target) error {
			if time.Since(begun) < 20*time.Second {
				return errors.New("not yet")
			}
			return nil
		}
		f.Once = true
		r := Round{{f, "w1"}}.Run(t.Context(), forgetful{m, begun}, Options{})
		d := r.Data
		if r.Class != Failed || !strings.Contains(r.Reason, "etcd lost") || d.LostWrites == nil || *d.LostWrites != d.Writes-3 || d.Writes < 10 {
			t.Errorf("got %+v", r)
		}
		if d.WriteGap < 3 || d.WriteGap > 4.5 {
			t.Errorf("a gap of %.1f s", d.WriteGap)
		}
		if got := d.Summary(); got != fmt.Sprintf("%d of %d writes", d.Writes-3, d.Writes) {
			t.Errorf("summary %q", got)
		}
	})
}

// Reports have the versions and the shape of the lab.
func TestDescribe(t *testing.T) {
	var r Report
	if err := Describe(t.Context(), versioned{newModel(t)}, &r); err != nil {
		t.Fatal(err)
	}
	if r.Lab.ControlPlanes != 3 || r.Lab.Workers != 2 || fmt.Sprint(r.Versions) != "{ [v1.35.4 v1.36.3] [3.6.8] [2.4.2]}" {
		t.Errorf("got %+v", r)
	}
}

// versioned is a lab in the middle of an upgrade.
type versioned struct{ *model }

func (v versioned) Run(ctx context.Context, node string, argv ...string) (string, error) {
	if slices.Contains(argv, "endpoint") {
		return `[{"Status": {"version": "3.6.8"}}]`, nil
	}
	return v.model.Run(ctx, node, argv...)
}

func (v versioned) Labctl(ctx context.Context, args ...string) (string, error) {
	if slices.Contains(args, "nodes") {
		return `{"items": [{"status": {"nodeInfo": {"kubeletVersion": "v1.36.3", "containerRuntimeVersion": "containerd://2.4.2"}}},
			{"status": {"nodeInfo": {"kubeletVersion": "v1.35.4", "containerRuntimeVersion": "containerd://2.4.2"}}}]}`, nil
	}
	return v.model.Labctl(ctx, args...)
}
