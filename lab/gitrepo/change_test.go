package gitrepo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8slab/lab/onboard"
)

// phase is a Runner that does as little as it can, or activates the entry.
type phase struct {
	r        *Repository // nil for a phase that has nothing to do with Git
	revision string
	after    error
}

func (p *phase) Plan(ctx context.Context) ([]string, error) {
	if p.r == nil {
		return nil, nil
	}
	return p.r.Plan(ctx)
}

func (p *phase) Run(ctx context.Context, j *onboard.Journal) (err error) {
	if p.r == nil {
		return nil
	}
	c := onboard.Change{Kind: Kind}
	c.Params, c.What, c.Undo = p.r.Change()
	p.revision, err = p.r.Run(ctx, func(ctx context.Context, isMade func(context.Context) (bool, error), do func(context.Context) error) error {
		return j.Do(ctx, c, isMade, do)
	})
	if err != nil {
		return err
	}
	return p.after
}

func (p *phase) Verify(ctx context.Context) (err error) {
	if p.r != nil {
		_, err = p.r.Verify(ctx)
	}
	return err
}

type undoer struct{ r *Repository }

func (u undoer) Undo(ctx context.Context, c onboard.Change) error   { return u.r.Undo(ctx, c.Params) }
func (u undoer) Verify(ctx context.Context, c onboard.Change) error { return u.r.Undone(ctx, c.Params) }

// engine onboards w3 with nothing but Git, and keeps its state in dir.
func engine(dir string, r *Repository) (*onboard.Engine, *phase) {
	store, err := onboard.OpenStore(dir, onboarded)
	if err != nil {
		panic(err)
	}
	e := &onboard.Engine{Store: store, Runners: map[onboard.PhaseID]onboard.Runner{}, Undoers: map[string]onboard.Undoer{Kind: undoer{r}}}
	for _, p := range onboard.Phases() {
		e.Runners[p.ID] = &phase{}
	}
	p := &phase{r: r}
	e.Runners[onboard.GitOpsActivation] = p
	return e, p
}

func TestOnboardAndRollBack(t *testing.T) {
	s := newServer(t)
	tree := s.tree()
	e, p := engine(t.TempDir(), s.open())
	must(t, e.Run(t.Context(), onboard.Options{}))
	s.expect(activated, subjectOn)
	if p.revision != s.revision() {
		t.Errorf("revision %s, wanted %s", p.revision, s.revision())
	}
	changes, err := e.Undoable()
	must(t, err)
	data, err := json.Marshal(changes)
	must(t, err)
	want := fmt.Sprintf(`"kind":"git-entry","params":{"branch":"main","entry":"../w3","file":%q,"url":%q}`, file, s.URL+"/fleet.git")
	if len(changes) != 1 || !strings.Contains(string(data), want) {
		t.Errorf("the journal has %s, wanted %s", data, want)
	}
	must(t, e.Run(t.Context(), onboard.Options{Resume: true}))
	s.expect(activated, subjectOn)

	must(t, e.Rollback(t.Context()))
	s.expect(original, subjectOff, subjectOn)
	if s.tree() != tree {
		t.Error("the tree is not what it was")
	}
}

// What was active before is not of this onboarding.
func TestActiveBefore(t *testing.T) {
	s := newServer(t)
	s.write(file, activated)
	s.push("main", "by hand")
	e, p := engine(t.TempDir(), s.open())
	must(t, e.Run(t.Context(), onboard.Options{}))
	if p.revision != s.revision() {
		t.Errorf("revision %s, wanted %s", p.revision, s.revision())
	}
	must(t, e.Rollback(t.Context()))
	s.expect(activated, "by hand")
}

// Somebody comments the entry by hand: a resumed onboarding activates it again, and a rollback finds it done.
func TestDoneByHand(t *testing.T) {
	s := newServer(t)
	e, _ := engine(t.TempDir(), s.open())
	must(t, e.Run(t.Context(), onboard.Options{}))
	byHand := func() {
		s.pull()
		s.write(file, original)
		s.push("main", "by hand")
	}
	byHand()
	must(t, e.Run(t.Context(), onboard.Options{Resume: true}))
	s.expect(activated, subjectOn, "by hand", subjectOn)
	byHand()
	must(t, e.Rollback(t.Context()))
	s.expect(original, "by hand", subjectOn, "by hand", subjectOn)
}

// Each obstacle is told with the place, once, and with the next step.
func TestObstacleInAnOnboarding(t *testing.T) {
	s := newServer(t)
	e, _ := engine(t.TempDir(), s.open())
	once := func(err error) {
		t.Helper()
		if !errors.Is(err, ErrUnreachable) || strings.Count(err.Error(), file) != 1 || strings.Count(err.Error(), steps[ErrUnreachable]) != 1 {
			t.Errorf("the error is %v", err)
		}
	}
	refuse := func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(http.StatusBadGateway) }
	s.around = refuse
	once(e.Run(t.Context(), onboard.Options{}))
	s.around = nil
	must(t, e.Run(t.Context(), onboard.Options{Resume: true}))
	s.around = refuse
	bad, ok := errors.AsType[*onboard.RollbackError](e.Rollback(t.Context()))
	if !ok {
		t.Fatal("it is rolled back")
	}
	once(bad.Err)
	s.around = nil
	must(t, e.Rollback(t.Context()))
	s.expect(original, subjectOff, subjectOn)
}

func TestPlan(t *testing.T) {
	s := newServer(t)
	r := s.open()
	revision := s.revision()
	steps, err := r.Plan(t.Context())
	must(t, err)
	want := "in line 4 of " + file + `, make "  - ../w3   # worker three" of "  #- ../w3   # worker three"` + "\ncommit that\n" +
		"push the commit to branch main of " + s.URL + "/fleet.git, which is at " + revision
	if got := strings.Join(steps, "\n"); got != want {
		t.Errorf("the plan is\n%s\nwanted\n%s", got, want)
	}
	s.expect(original)
	if _, err := r.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), "is not active in "+file) {
		t.Errorf("the error is %v", err)
	}

	_, err = r.Activate(t.Context())
	must(t, err)
	steps, err = r.Plan(t.Context())
	if err != nil || len(steps) != 1 || !strings.HasPrefix(steps[0], "nothing in Git: ../w3 is active") {
		t.Errorf("the plan is %q, %v", steps, err)
	}
	if revision, err := r.Verify(t.Context()); err != nil || revision != s.revision() {
		t.Errorf("revision %s, %v", revision, err)
	}

	_, err = s.open(func(c *Config) { c.Entry = "../w9" }).Plan(t.Context())
	wrong(t, err, ErrNoEntry)
}

// The configuration may be another one at the rollback.
func TestUndoerAfterAnotherConfiguration(t *testing.T) {
	s := newServer(t)
	r := s.open()
	_, err := r.Activate(t.Context())
	must(t, err)
	params, _, _ := r.Change()
	elsewhere := s.open(func(c *Config) { c.URL += "x" })
	for _, err := range []error{elsewhere.Undone(t.Context(), params), elsewhere.Undo(t.Context(), params)} {
		if err == nil || !strings.Contains(err.Error(), "set it back") {
			t.Errorf("the error is %v", err)
		}
	}
	u := s.open(func(c *Config) { c.Branch, c.File, c.Entry = "other", "README.md", "../w4" })
	if err := u.Undone(t.Context(), params); err == nil || !strings.Contains(err.Error(), "../w3 is active at main@sha1:") {
		t.Errorf("the error is %v", err)
	}
	must(t, u.Undo(t.Context(), params))
	must(t, u.Undone(t.Context(), params))
	s.expect(original, subjectOff, subjectOn)

	delete(params, "file")
	if err := u.Undone(t.Context(), params); err == nil || !strings.Contains(err.Error(), `"" is not a path in a repository`) {
		t.Errorf("the error is %v", err)
	}
}
