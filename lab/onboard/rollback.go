package onboard

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// RollbackError is a rollback that did not come to its end. Running it again goes on with what is left.
type RollbackError struct {
	Node string
	Left []Change // in the order in which they are undone; the first is where it stopped
	Err  error
}

func (e *RollbackError) Error() string {
	var left strings.Builder
	for _, c := range e.Left {
		_, _ = fmt.Fprintf(&left, "\n  %s: %s", c.Phase, c.Undo)
	}
	return fmt.Sprintf("roll back the onboarding of %s: %v\nleft to do:%s\nnext: fix that and run --rollback again",
		e.Node, e.Err, left.String())
}

func (e *RollbackError) Unwrap() error { return e.Err }

// Undoable lists what a rollback would undo, in its order: the changes of the onboarding under way, or of the completed one. It changes
// nothing. The error is ErrNothing when there is none.
func (e *Engine) Undoable() ([]Change, error) {
	under, last, err := e.Store.look()
	if err != nil {
		return nil, err
	}
	st, err := e.toUndo(under, last)
	if err != nil {
		return nil, err
	}
	return st.left(), nil
}

// toUndo is the state that a rollback works on.
func (e *Engine) toUndo(under, last *State) (*State, error) {
	node := e.Store.target.Node
	st := under
	if st == nil {
		st = last
	}
	switch {
	case st == nil:
		return nil, fmt.Errorf("roll back the onboarding of %s: %w: none was begun", node, ErrNothing)
	case st.Status == RolledBack:
		return nil, fmt.Errorf("roll back the onboarding of %s: %w: that was done at %s", node, ErrNothing, clock(st.Timestamp))
	}
	for _, c := range st.left() {
		if e.Undoers[c.Kind] == nil {
			return nil, fmt.Errorf("roll back the onboarding of %s: nothing can undo a change of the kind %q: use the labctl that made it", node, c.Kind)
		}
	}
	return st, nil
}

// Rollback undoes every change of the onboarding, the newest first, and verifies each. It stops at the first that fails, with a
// *RollbackError. What was undone is not touched again; what was only intended is undone if it happened. The caller asks the user first.
func (e *Engine) Rollback(ctx context.Context) error {
	return e.withState(ctx, "labctl onboard --rollback", e.toUndo, func(s *session) error { return s.rollback(ctx) })
}

func (s *session) rollback(ctx context.Context) error {
	if s.state.Status != RollingBack {
		if err := s.Store.backup(s.state); err != nil {
			return fmt.Errorf("keep the state before the rollback: %w", err)
		}
		if err := s.update(turnBack); err != nil {
			return err
		}
	}
	for _, c := range s.state.left() {
		if err := s.undo(ctx, c); err != nil {
			return &RollbackError{Node: s.Store.target.Node, Left: s.state.left(), Err: err}
		}
	}
	return s.finish(RolledBack)
}

// turnBack makes an onboarding one that is rolled back. No phase is in progress any more.
func turnBack(st *State) {
	st.Status, st.CurrentPhase = RollingBack, ""
	for _, p := range phases {
		if st.PhaseStatus[p.ID] == InProgress {
			st.set(p.ID, Failed, errors.New("interrupted, then rolled back"))
		}
	}
}

// undo undoes a change, unless the world shows nothing of it, and writes down how that went.
func (s *session) undo(ctx context.Context, c Change) error {
	limit := s.limit(c.Phase)
	step := s.Events.Start(s.Store.target.Node, "undo "+c.Kind, limit)
	step.Progress("%s", c.Undo)
	nothing := func() string { return "" }
	err := bounded(ctx, "undo "+c.Kind, limit, nothing, func(ctx context.Context) error { return undone(ctx, s.Undoers[c.Kind], c) })
	if err == nil {
		return step.End(s.note(c, Undone))
	}
	err = fmt.Errorf("%s: %w", c.Undo, err)
	var saved error
	if ctx.Err() == nil { // an interruption is no failure
		saved = s.update(func(st *State) { st.record(c.Phase, err) })
	}
	return step.End(joined(err, saved))
}

// undone looks first: a change may never have been made, or a killed rollback may have undone it.
func undone(ctx context.Context, u Undoer, c Change) error {
	if u.Verify(ctx, c) == nil {
		return nil
	}
	if err := u.Undo(ctx, c); err != nil {
		return err
	}
	if err := u.Verify(ctx, c); err != nil {
		return fmt.Errorf("it was undone, and something is left: %w", err)
	}
	return nil
}
