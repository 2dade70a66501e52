package onboard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8slab/lab/event"
)

var target = Target{Node: "w2", Role: "worker", Cluster: "small", ClusterID: "4f0c6f0e-7a53-4c5e-9a40-0d1e5b1a2c3d"}

const anotherID = "00000000-0000-4000-8000-000000000001"

// world is a cluster of files: a thing is there when its file is, and a log counts what was done.
type world struct{ dir string }

// found is a thing that was there before anybody was onboarded.
const found = "found"

func newWorld(dir string) world {
	w := world{dir: filepath.Join(dir, "world")}
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		panic(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, found), nil, 0o600); err != nil {
		panic(err)
	}
	return w
}

func (w world) log() string { return w.dir + ".log" }

func (w world) has(name string) bool {
	_, err := os.Stat(filepath.Join(w.dir, name))
	return err == nil
}

// things lists what is there.
func (w world) things() string {
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		panic(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// done counts what was done, in the order of the alphabet.
func (w world) done() string {
	data, _ := os.ReadFile(w.log())
	lines := strings.Fields(string(data))
	slices.Sort(lines)
	return strings.Join(lines, " ")
}

func (w world) note(what string) {
	f, err := os.OpenFile(w.log(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(what + "\n")
	}
	if err != nil {
		panic(err)
	}
	f.Close()
}

func (w world) make(name string) error {
	w.note("make:" + name)
	return os.WriteFile(filepath.Join(w.dir, name), nil, 0o600)
}

// Undo and Verify make the world an Undoer.
func (w world) Undo(_ context.Context, c Change) error {
	w.note("undo:" + c.Params["thing"])
	return os.Remove(filepath.Join(w.dir, c.Params["thing"]))
}

func (w world) Verify(_ context.Context, c Change) error {
	if w.has(c.Params["thing"]) {
		return fmt.Errorf("%s is still there", c.Params["thing"])
	}
	return nil
}

func (w world) change(thing string) Change {
	return Change{Kind: "thing", Params: map[string]string{"thing": thing}, What: "make " + thing, Undo: "remove " + thing}
}

// runner is a phase that makes things; run, if set, goes before it.
type runner struct {
	world  world
	things []string
	run    func(context.Context, *Journal) error
	ran    int
}

func (r *runner) Plan(context.Context) ([]string, error) {
	var steps []string
	for _, t := range r.things {
		steps = append(steps, "make "+t)
	}
	return steps, nil
}

func (r *runner) Run(ctx context.Context, j *Journal) error {
	r.ran++
	if r.run != nil {
		if err := r.run(ctx, j); err != nil {
			return err
		}
	}
	for _, t := range r.things {
		err := j.Do(ctx, r.world.change(t), func(context.Context) (bool, error) { return r.world.has(t), nil },
			func(context.Context) error { return r.world.make(t) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) Verify(context.Context) error {
	for _, t := range r.things {
		if !r.world.has(t) {
			return fmt.Errorf("%s is gone", t)
		}
	}
	return nil
}

// things that the phases make.
var things = map[PhaseID][]string{
	GitOpsActivation: {"commit", "reconciled"}, NodeJoinMonitoring: {"node"}, StorageIntegration: {found, "disk"}, HealthVerification: {"mark"},
}

const (
	allThings = "commit disk found mark node reconciled"
	allMade   = "make:commit make:disk make:mark make:node make:reconciled"
	allUndone = "undo:commit undo:disk undo:mark undo:node undo:reconciled"
)

// fake is an engine on a world of files.
type fake struct {
	*Engine
	world   world
	runners map[PhaseID]*runner
	events  *bytes.Buffer
}

// newFake makes an engine; another in the same directory can go on where it was ended.
func newFake(dir string) *fake { return newFakeOf(dir, target) }

func newFakeOf(dir string, t Target) *fake {
	store, err := OpenStore(filepath.Join(dir, "onboard"), t)
	if err != nil {
		panic(err)
	}
	w := newWorld(dir)
	f := &fake{world: w, runners: map[PhaseID]*runner{}, events: &bytes.Buffer{}}
	f.Engine = &Engine{
		Store: store, Runners: map[PhaseID]Runner{}, Undoers: map[string]Undoer{"thing": w}, Events: event.NewStream(levels{f.events}),
	}
	for _, p := range phases {
		f.runners[p.ID] = &runner{world: w, things: things[p.ID]}
		f.Runners[p.ID] = f.runners[p.ID]
	}
	return f
}

// levels writes events as lines of a log.
type levels struct{ b *bytes.Buffer }

func (l levels) Emit(e event.Event) { fmt.Fprintf(l.b, "%s %s: %s\n", Level(e), e.Phase, e.Detail) }

var errBroken = errors.New("the API server does not answer")

func broken(context.Context, *Journal) error { return errBroken }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// contains fails for an error, or none, whose text lacks one of the texts.
func contains(t *testing.T, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got the error %v, which lacks %q", err, text)
		}
	}
}

// tree is the content and the modes of a directory, to compare.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v %v\n", path, info.Mode(), info.ModTime().Format(time.RFC3339Nano))
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			b.Write(data)
			return err
		}
		return nil
	})
	must(t, err)
	return b.String()
}

// phasesOf lists how the phases stand, in their order.
func phasesOf(st *State) string {
	short := map[Status]string{NotStarted: ".", InProgress: ">", Completed: "+", Failed: "!", Skipped: "-", NotApplicable: "0"}
	var b strings.Builder
	for _, p := range phases {
		b.WriteString(short[st.PhaseStatus[p.ID]])
	}
	return b.String()
}
