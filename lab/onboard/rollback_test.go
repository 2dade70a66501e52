package onboard

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// stuck is a world where one thing cannot be undone.
type stuck struct {
	world
	thing string
}

var errDrain = errors.New("pods of another are in the way")

func (s stuck) Undo(ctx context.Context, c Change) error {
	if c.Params["thing"] == s.thing {
		return errDrain
	}
	return s.world.Undo(ctx, c)
}

// deaf is a world where undoing does nothing and says it was fine.
type deaf struct{ world }

func (deaf) Undo(context.Context, Change) error { return nil }

func undoTexts(changes []Change) string {
	var all []string
	for _, c := range changes {
		all = append(all, c.Undo)
	}
	return strings.Join(all, ", ")
}

func TestRollback(t *testing.T) {
	dir := t.TempDir()
	f := newFake(dir)
	must(t, f.Run(t.Context(), Options{}))
	left, err := f.Undoable()
	must(t, err)
	if got := undoTexts(left); got != "remove mark, remove disk, remove node, remove reconciled, remove commit" {
		t.Errorf("would undo %s", got)
	}
	must(t, f.Rollback(t.Context()))
	v := view(t, f)
	if v.Condition != TakenBack || f.world.things() != found || f.world.done() != allMade+" "+allUndone || len(v.left()) != 0 {
		t.Errorf("got %s, %s, %s", v.Condition, f.world.things(), f.world.done())
	}
	for _, err := range []error{f.Rollback(t.Context()), f.Run(t.Context(), Options{Resume: true})} {
		if !errors.Is(err, ErrNothing) {
			t.Errorf("after the rollback: %v", err)
		}
	}
	all, err := f.Store.History()
	must(t, err)
	if len(all) != 2 || all[0].State.Status != Completed || all[1].State.Status != RolledBack || all[1].Number != 2 {
		t.Errorf("history %+v", all)
	}
	if kept, _ := filepath.Glob(filepath.Join(dir, "onboard", "w2", "before-rollback-*.json")); len(kept) != 1 {
		t.Errorf("kept %q", kept)
	}
	must(t, f.Run(t.Context(), Options{})) // in again
	if v := view(t, f); v.Condition != Onboarded || f.world.things() != allThings {
		t.Errorf("got %s, %s", v.Condition, f.world.things())
	}
}

// A step that fails ends the rollback with what is left; repeating it goes on there.
func TestRollbackStops(t *testing.T) {
	for name, bad := range map[string]func(world) Undoer{
		"it cannot be undone": func(w world) Undoer { return stuck{w, "node"} },
		"undoing did nothing": func(w world) Undoer { return deaf{w} },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f := newFake(dir)
			f.runners[NetworkValidation].run = broken
			if err := f.Run(t.Context(), Options{}); !errors.Is(err, errBroken) {
				t.Fatal(err)
			}
			good := f.Undoers["thing"]
			f.Undoers["thing"] = bad(f.world)
			err := f.Rollback(t.Context())
			stopped, ok := errors.AsType[*RollbackError](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			contains(t, err, "roll back the onboarding of w2: remove ", "left to do:", "gitops_activation: remove reconciled\n  gitops_activation: remove commit", "--rollback again")
			v := view(t, f)
			if v.Condition != HalfBack || v.Errors[len(v.Errors)-1].Phase != stopped.Left[0].Phase || undoTexts(v.left()) != undoTexts(stopped.Left) {
				t.Errorf("got %s, %+v", v.Condition, v.Errors)
			}
			contains(t, f.Run(t.Context(), Options{Resume: true}), "half rolled back", "--rollback")
			before := f.world.done()

			f.Undoers["thing"] = good
			must(t, f.Rollback(t.Context()))
			if v := view(t, f); v.Condition != TakenBack || f.world.things() != found {
				t.Errorf("got %s, %s; before that %s", v.Condition, f.world.things(), before)
			}
			if got := f.world.done(); strings.Count(got, "undo:") != 4 {
				t.Errorf("undone: %s", got)
			}
			if kept, _ := filepath.Glob(filepath.Join(dir, "onboard", "w2", "before-rollback-*.json")); len(kept) != 1 {
				t.Errorf("kept %q", kept)
			}
		})
	}
}

// An interrupted rollback is no failed step, and goes on.
func TestRollbackInterrupted(t *testing.T) {
	f := newFake(t.TempDir())
	must(t, f.Run(t.Context(), Options{}))
	ctx, cancel := context.WithCancel(t.Context())
	good := f.Undoers["thing"]
	f.Undoers["thing"] = cancelling{f.world, cancel}
	if err := f.Rollback(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if v := view(t, f); v.Condition != HalfBack || len(v.Errors) != 0 || len(v.left()) != 5 {
		t.Errorf("got %s, %+v", v.Condition, v.Errors)
	}
	f.Undoers["thing"] = good
	must(t, f.Rollback(t.Context()))
}

type cancelling struct {
	world
	cancel func()
}

func (c cancelling) Undo(ctx context.Context, _ Change) error {
	c.cancel()
	return fmt.Errorf("delete the Node: %w", ctx.Err())
}

func TestNothingToRollBack(t *testing.T) {
	f := newFake(t.TempDir())
	_, err := f.Undoable()
	for _, err := range []error{err, f.Rollback(t.Context())} {
		if !errors.Is(err, ErrNothing) {
			t.Errorf("got %v", err)
		}
	}
}

// What nothing can undo is not made, and a state of another labctl's kinds is left alone as a whole.
func TestUnknownKinds(t *testing.T) {
	f := newFake(t.TempDir())
	f.runners[HealthVerification].run = func(ctx context.Context, j *Journal) error {
		return j.Do(ctx, Change{Kind: "tattoo", What: "tattoo the node"}, nil, nil)
	}
	contains(t, f.Run(t.Context(), Options{}), "tattoo the node: nothing can undo a change of the kind \"tattoo\", so it is not made")
	before := f.world.done()
	delete(f.Undoers, "thing")
	contains(t, f.Rollback(t.Context()), `nothing can undo a change of the kind "thing"`)
	if v := view(t, f); v.Condition != Broken || f.world.done() != before {
		t.Errorf("got %s, %s", v.Condition, f.world.done())
	}
}
