package phase

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8slab/lab/event"
	"k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/machine"
	"k8slab/lab/onboard"
	"k8slab/lab/validate"
)

var target = onboard.Target{Node: "w3", Role: "worker", Cluster: "small", ClusterID: "4f0c6f0e-7a53-4c5e-9a40-0d1e5b1a2c3d"}

// idle is a phase that does nothing.
type idle struct{}

func (idle) Plan(context.Context) ([]string, error)      { return nil, nil }
func (idle) Run(context.Context, *onboard.Journal) error { return nil }
func (idle) Verify(context.Context) error                { return nil }

// idleUndoer undoes changes that are not under test.
type idleUndoer struct{}

func (idleUndoer) Undo(context.Context, onboard.Change) error   { return nil }
func (idleUndoer) Verify(context.Context, onboard.Change) error { return nil }

// lines keeps events as lines of a log.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) Emit(e event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, fmt.Sprintf("%s %s: %s", onboard.Level(e), e.Phase, e.Detail))
}

func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.text, func(s string) bool { return strings.Contains(s, text) })
}

// bench is an engine in which all phases but those under test are idle.
type bench struct {
	*onboard.Engine
	dir    string
	store  *onboard.Store
	seen   *Evidence
	events *lines
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dir := t.TempDir()
	store, err := onboard.OpenStore(dir, target)
	if err != nil {
		t.Fatal(err)
	}
	events := &lines{}
	b := &bench{dir: dir, store: store, seen: OpenEvidence(dir, target.Node, store), events: events, Engine: &onboard.Engine{
		Store: store, Runners: map[onboard.PhaseID]onboard.Runner{}, Events: event.NewStream(events),
		Undoers: map[string]onboard.Undoer{testKind: idleUndoer{}, machineKind: idleUndoer{}, joinKind: idleUndoer{}, "git-entry": idleUndoer{}},
	}}
	for _, p := range onboard.Phases() {
		b.Runners[p.ID] = idle{}
	}
	return b
}

// state is that of the onboarding under way or of the last one.
func (b *bench) state(t *testing.T) *onboard.State {
	t.Helper()
	view, err := b.store.Status()
	if err != nil || view.State == nil {
		t.Fatal(view, err)
	}
	return view.State
}

// changes lists the journal's changes with their status.
func (b *bench) changes(t *testing.T) string {
	t.Helper()
	var all []string
	for _, c := range b.state(t).Changes {
		all = append(all, c.Kind+":"+string(c.Status))
	}
	return strings.Join(all, " ")
}

func finding(area validate.Area, name string, status validate.Status, detail, next string) validate.Check {
	return validate.Check{Area: area, Name: name, Look: func(context.Context) (validate.Finding, error) {
		return validate.Finding{Status: status, Detail: detail, Next: next}, nil
	}}
}

// world is a lab and its cluster. It writes down what is done to it.
type world struct {
	did      []string
	state    machine.State
	admitted bool
	node     *kube.Node
	traces   []string
	joinErr  error
	drainErr error
}

const ourMachine = "0123456789abcdef0123456789abcdef"

func (w *world) note(what string) { w.did = append(w.did, what) }

func (w *world) done() string { return strings.Join(w.did, " ") }

func (w *world) Machine(context.Context, string) (machine.State, bool, error) {
	return w.state, w.admitted, nil
}

func (w *world) MakeMachine(_ context.Context, node string) error {
	w.note("make:" + node)
	w.state, w.admitted = machine.Running, true
	return nil
}

func (w *world) RemoveMachine(_ context.Context, node string) error {
	w.note("remove:" + node)
	w.state, w.admitted = machine.Absent, false
	return nil
}

func (w *world) Join(_ context.Context, node string) error {
	w.note("join:" + node)
	if w.joinErr != nil {
		return w.joinErr
	}
	w.node = readyNode(node)
	return nil
}

func readyNode(name string) *kube.Node {
	return &kube.Node{Name: name, Ready: true, Role: "worker", MachineID: ourMachine, KubeletVersion: "v1.36.3", IP: "10.30.0.23", Created: time.Now()}
}

func (w *world) Reset(_ context.Context, node string) error {
	w.note("reset:" + node)
	w.node, w.traces = nil, nil
	return nil
}

func (w *world) Traces(context.Context, string) ([]string, error) {
	if w.node != nil {
		return append([]string{"the Node"}, w.traces...), nil
	}
	return w.traces, nil
}

func (w *world) Preflight(context.Context, string, bool) ([]join.Check, error) { return nil, nil }

func (w *world) Node(context.Context, string) (*kube.Node, error) { return w.node, nil }

func (w *world) DeleteNode(_ context.Context, name string) error {
	w.note("delete:" + name)
	w.node = nil
	return nil
}

func (w *world) Drain(_ context.Context, name string, _ func(string, ...any)) error {
	w.note("drain:" + name)
	return w.drainErr
}

func contains(t *testing.T, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got the error %v, which lacks %q", err, text)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// files is what is in a directory, to compare.
func files(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	must(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			_, _ = fmt.Fprintln(&all, path, info.Size(), info.ModTime())
		}
		return err
	}))
	return all.String()
}

var errBroken = errors.New("the API server does not answer")
