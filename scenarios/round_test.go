package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8slab/lab/symptom"
	"k8slab/lab/wait"
)

// model is a lab in memory: faults are on nodes until labctl ends them.
type model struct {
	t       *testing.T
	members []Member
	on      map[string]symptom.ID // node: what is wrong with it
	calls   []string
	repairs func(m *model) error

	mu      sync.Mutex // of counted
	counted string     // in etcd
}

func newModel(t *testing.T) *model {
	return &model{t: t, members: members(3, 2), on: map[string]symptom.ID{}, repairs: func(m *model) error { clear(m.on); return nil }}
}

// Run answers what an experiment asks nodes for.
func (m *model) Run(_ context.Context, node string, argv ...string) (string, error) {
	switch {
	case slices.Contains(argv, "put"):
		m.mu.Lock()
		defer m.mu.Unlock()
		m.counted = argv[len(argv)-1]
		return "OK\n", nil
	case slices.Contains(argv, "--print-value-only"):
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.counted + "\n", nil
	case argv[0] == "rm", strings.Contains(argv[len(argv)-1], baselineFile) && !strings.Contains(argv[2], "machine-id"):
		return "", nil
	case slices.Contains(argv, "member"):
		return "1, started, cp1, x\n", nil
	case argv[0] == "sh" && strings.Contains(argv[2], "machine-id"):
		return "id-" + node + "\n1\nsum\ndata", nil
	}
	return "", nil
}

func (m *model) Labctl(_ context.Context, args ...string) (string, error) {
	switch args[0] {
	case "status":
		out, _ := json.Marshal(map[string]any{"nodes": m.members})
		if len(m.on) > 0 {
			return string(out), errors.New("not healthy")
		}
		return string(out), nil
	case "diagnose":
		type finding struct{ Symptom, Level, Node string }
		var findings []finding
		for _, n := range []string{"cp1", "cp2", "cp3", "w1", "w2"} {
			if id, broken := m.on[n]; broken {
				findings = append(findings, finding{string(id), string(symptom.Fail), n})
			}
		}
		out, _ := json.Marshal(map[string]any{"findings": findings})
		return string(out), nil
	case "kubectl":
		if slices.Contains(args, "--output=name") {
			return "", nil
		}
		return `{"items": []}`, nil
	}
	m.calls = append(m.calls, strings.Join(args, " "))
	switch args[0] {
	case "repair":
		return "", m.repairs(m)
	case "join":
		delete(m.on, args[1])
	case "up":
		clear(m.on)
	}
	return "", nil
}

// breaks is a fault of the model.
func (m *model) breaks(name string, id symptom.ID, recover [][]string) Fault {
	return Fault{
		Name: name, Roles: everyRole, Symptom: id, Recover: recover,
		Inject: func(_ context.Context, s Target) error { m.on[s.Node] = id; return nil },
		Effect: func(_ context.Context, s Target) error {
			if m.on[s.Node] != id {
				return absent("no effect")
			}
			return nil
		},
	}
}

func TestExperimentOfSeveral(t *testing.T) {
	const cni, kubelet = symptom.CNINotInitialized, symptom.KubeletNotRunning
	t.Run("each is ended", func(t *testing.T) {
		m := newModel(t)
		m.repairs = func(m *model) error {
			delete(m.on, "w1")
			if len(m.on) > 0 {
				return errors.New("1 left that cannot be repaired safely")
			}
			return nil
		}
		r := Round{{m.breaks("a", cni, repair), "w1"}, {m.breaks("b", kubelet, nodeVerb("join")), "cp1"}}.Run(t.Context(), m, Options{})
		if r.Class != Passed || r.Fault != "a+b" || r.Node != "w1+cp1" || r.Detected.Cause != kubelet {
			t.Errorf("got %+v", r)
		}
		if got := fmt.Sprint(m.calls); got != "[repair join cp1 repair]" {
			t.Errorf("called %s", got)
		}
	})
	t.Run("neither is ended", func(t *testing.T) {
		m := newModel(t)
		m.repairs = func(*model) error { return errors.New("left") }
		r := Round{{m.breaks("a", cni, repair), "w1"}, {m.breaks("b", kubelet, repair), "w2"}}.Run(t.Context(), m, Options{})
		if r.Class != Failed || fmt.Sprint(m.calls) != "[repair repair repair up]" {
			t.Errorf("got %+v after %q", r, m.calls)
		}
	})
	t.Run("one shows for 40 s, beside one that takes a minute to", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t)
			slow, brief := m.breaks("slow", cni, repair), m.breaks("brief", kubelet, repair)
			begun := time.Now()
			slow.Effect = func(context.Context, Target) error {
				if time.Since(begun) < time.Minute {
					return errors.New("not yet")
				}
				return nil
			}
			brief.Effect = func(context.Context, Target) error {
				if time.Since(begun) > 40*time.Second {
					return wait.Hopeless(errors.New("too late"))
				}
				return nil
			}
			slow.Once, brief.Once = true, true
			var told []string // by one at a time, or -race says so
			r := Round{{slow, "cp1"}, {brief, "w1"}}.Run(t.Context(), m, Options{Progress: func(step string) { told = append(told, step) }})
			if r.Class != Passed || r.ToEffect < 60 || !slices.Contains(told, "slow: wait for the effect") || !slices.Contains(told, "brief: wait for the effect") {
				t.Errorf("got %+v, told %q", r, told)
			}
		})
	})
	t.Run("they do not compose", func(t *testing.T) {
		m := newModel(t)
		for _, nodes := range [][2]string{{"w1", "w1"}, {"cp1", "cp2"}, {"w1", ""}} {
			b := Fault{Name: "b", Roles: everyRole}
			if nodes[1] == "" {
				b.ByHand = "a person must act"
			}
			r := Round{{m.breaks("a", cni, repair), nodes[0]}, {b, nodes[1]}}.Run(t.Context(), m, Options{})
			if r.Class != NotApplicable || len(m.on) > 0 {
				t.Errorf("%s: got %+v, made %v", nodes, r, m.on)
			}
		}
	})
	t.Run("what is asked on a control plane is asked beside both", func(t *testing.T) {
		m := newModel(t)
		var beside []string
		note := func(f Fault) Fault {
			inject := f.Inject
			f.Inject = func(ctx context.Context, s Target) error {
				beside = append(beside, s.ControlPlane)
				return inject(ctx, s)
			}
			return f
		}
		Round{{note(m.breaks("a", cni, repair)), "cp1"}, {note(m.breaks("b", kubelet, repair)), "w2"}}.Run(t.Context(), m, Options{})
		if fmt.Sprint(beside) != "[cp2 cp2]" {
			t.Errorf("beside %s", beside)
		}
	})
}

// That kubeadm's join names another cause is no reason to doubt the injector.
func TestExperimentOfAMisnamedJoin(t *testing.T) {
	for class, why := range map[Class]error{Failed: joinOutcome{Symptom: symptom.SwapEnabled}.expect(symptom.DiskFull), SetupFailed: errors.New("no effect")} {
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t)
			f := m.breaks("a", symptom.DiskFull, repair)
			f.Effect = func(context.Context, Target) error { return why }
			if r := f.Run(t.Context(), m, Options{}); r.Class != class || !strings.Contains(r.Reason, why.Error()) {
				t.Errorf("%v: got %+v", why, r)
			}
		})
	}
}

// A repair that did nothing is no success where the lab has not noticed the fault yet.
func TestExperimentOfAFaultThatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, once := range []bool{false, true} {
			m := newModel(t)
			m.repairs = func(m *model) error { return nil }
			f := m.breaks("a", symptom.CNINotInitialized, repair)
			f.Once = once
			f.Restore = func(context.Context, Target) error { clear(m.on); return nil }
			r := Round{{f, "w1"}}.Run(t.Context(), unaware{m}, Options{})
			if (r.Class == Passed) != once || !once && !strings.Contains(r.Reason, "to be gone: 1m0s budget ran out") {
				t.Errorf("once %v: got %+v", once, r)
			}
		}
	})
}

// That nobody can tell whether the effect is still there is no proof that it is gone.
func TestExperimentOfAFaultThatNobodyCanSee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(t)
		f := m.breaks("a", symptom.CNINotInitialized, repair)
		effect := f.Effect
		f.Effect = func(ctx context.Context, s Target) error {
			if len(m.on) == 0 {
				return errors.New("connection lost")
			}
			return effect(ctx, s)
		}
		r := Round{{f, "w1"}}.Run(t.Context(), m, Options{})
		if r.Class != Failed || !strings.Contains(r.Reason, "to be gone: 1m0s budget ran out; last seen: connection lost") {
			t.Errorf("got %+v", r)
		}
	})
}

// unaware is a model whose status says that all is well.
type unaware struct{ *model }

func (u unaware) Labctl(ctx context.Context, args ...string) (string, error) {
	out, err := u.model.Labctl(ctx, args...)
	if args[0] == "status" {
		err = nil
	}
	return out, err
}

// The faults of an experiment are in the record while they are in the lab, and stay there if the experiment is killed.
func TestExperimentIsRecorded(t *testing.T) {
	for _, killed := range []bool{false, true} {
		m := newModel(t)
		m.repairs = func(m *model) error { clear(m.on); return nil }
		ctx, kill := context.WithCancel(t.Context())
		record := Record{Path: filepath.Join(t.TempDir(), "faults.json")}
		if err := record.Add(Injected{Fault: "by-hand", Node: "w2"}); err != nil {
			t.Fatal(err)
		}
		f := m.breaks("a", symptom.CNINotInitialized, repair)
		effect := f.Effect
		f.Effect = func(ctx context.Context, s Target) error {
			if left, err := record.Left(); err != nil || len(left) != 1 || left[0].Fault != "a" || left[0].Node != "w1" {
				t.Errorf("while it is in the lab: %v, %v", left, err)
			}
			if killed {
				kill()
			}
			return effect(ctx, s)
		}
		r := Round{{f, "w1"}}.Run(ctx, m, Options{Record: record})
		kill()
		if (r.Class == Passed) == killed {
			t.Errorf("got %+v", r)
		}
		left, err := record.Left()
		if err != nil || (len(left) == 1) != killed {
			t.Errorf("killed %v: left %v, %v", killed, left, err)
		}
		if err := record.Forget(left...); err != nil {
			t.Error(err)
		}
		if faults, err := record.Faults(); err != nil || len(faults) != 1 || faults[0].Fault != "by-hand" {
			t.Errorf("of others: %v, %v", faults, err)
		}
	}
}

// late is a model whose up looks once, too early. It is well at the given look after that, if it ever is.
type late struct {
	*model
	well, looks int
}

func (l *late) Labctl(ctx context.Context, args ...string) (string, error) {
	switch args[0] {
	case "up":
		return "", errors.New("3 of 4 pods ready")
	case "status":
		if l.looks++; l.looks == l.well {
			clear(l.on)
		}
	}
	return l.model.Labctl(ctx, args...)
}

// A lab has come back if it is healthy a moment after up has looked, and not if it stays ill.
func TestBringBackWaits(t *testing.T) {
	for _, well := range []int{3, 0} {
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t)
			m.on["w1"], m.repairs = symptom.KubeProxyCrash, func(*model) error { return nil }
			if err := BringBack(t.Context(), &late{model: m, well: well}); (err == nil) != (well > 0) {
				t.Errorf("well at look %d: %v", well, err)
			}
		})
	}
}

// An experiment relies on the proof of the one that has just ended, and on no older one.
func TestOneProofBetweenExperiments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, record := newModel(t), Record{Path: filepath.Join(t.TempDir(), "faults.json")}
		looked := func() (before bool) {
			o := Options{Record: record, Progress: func(step string) { before = before || step == "healthy before" }}
			if r := (Round{{m.breaks("a", symptom.CNINotInitialized, repair), "w1"}}).Run(t.Context(), m, o); r.Class != Passed {
				t.Fatalf("got %+v", r)
			}
			return before
		}
		first, next := looked(), looked()
		time.Sleep(proofHolds + time.Second)
		if later := looked(); !first || next || !later {
			t.Errorf("looked whether the lab is healthy: first %t, at once %t, later %t", first, next, later)
		}
		if record.takeProof() == nil || record.takeProof() != nil {
			t.Error("a proof is taken once")
		}
		looked()
		if err := record.Add(Injected{Fault: "by-hand", Node: "w2"}); err != nil || record.takeProof() != nil {
			t.Errorf("%v; a proof holds for a lab that has got a fault since", err)
		}
	})
}

func TestSayingsOfSeveral(t *testing.T) {
	at := Target{Node: "w1", ControlPlane: "cp1"}
	silent := placed{Fault{}, at}
	loud := placed{Fault{Symptom: symptom.DiskFull}, at}
	common := placed{Fault{Symptom: symptom.EtcdNoQuorum, Of: theCluster}, at}
	either := placed{Fault{Symptom: symptom.DiskFull, Of: func(s Target) []string { return []string{s.Node, s.ControlPlane} }}, at}
	for _, tt := range []struct {
		faults []placed
		want   string
	}{
		{[]placed{silent}, "[nothing]"},
		{[]placed{loud}, "[disk-full on w1]"},
		{[]placed{silent, loud}, "[disk-full on w1]"},
		{[]placed{common, either}, "[etcd-no-quorum disk-full on w1 disk-full on cp1]"},
	} {
		if got := fmt.Sprint(statements(tt.faults)); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

// A cause that is blamed on another node sends its reader to the wrong one.
func TestExperimentOfACauseOfAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(t)
		f := m.breaks("a", symptom.CNINotInitialized, repair)
		f.Of = func(Target) []string { return []string{"w2"} }
		r := Round{{f, "w1"}}.Run(t.Context(), m, Options{})
		if want := "timed out after 30 s: expected cni-not-initialized on w2, diagnosis said cni-not-initialized on w1"; r.Class != Failed || !strings.Contains(r.Reason, want) {
			t.Errorf("got %+v", r)
		}
	})
}
