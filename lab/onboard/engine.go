package onboard

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8slab/lab/event"
	"k8slab/lab/wait"
)

// Runner is what a phase does. All of it ends soon after its context.
type Runner interface {
	// Plan lists what Run would do, a line for each step.
	Plan(ctx context.Context) ([]string, error)
	// Run does the phase. It makes every change through the journal, and can be repeated after any interruption.
	Run(ctx context.Context, j *Journal) error
	// Verify returns nil if what Run completed still holds. It checks once.
	Verify(ctx context.Context) error
}

// Undoer undoes the changes of one kind. All of it ends soon after its context.
type Undoer interface {
	// Undo undoes the change, and returns when that is done. The change may never have been made, or be undone already.
	Undo(ctx context.Context, c Change) error
	// Verify returns nil if nothing is left of the change. It checks once.
	Verify(ctx context.Context, c Change) error
}

// Engine adds one node to a cluster, or removes it again. Another process can continue wherever one was ended.
type Engine struct {
	Store    *Store
	Runners  map[PhaseID]Runner        // one for each phase
	Undoers  map[string]Undoer         // by the kind of change
	Timeouts map[PhaseID]time.Duration // where they are not the phases' own; a phase's bounds an attempt, a verification and each undoing
	Events   *event.Stream             // nil for none
}

// Options of a run.
type Options struct {
	Resume         bool // go on with the onboarding that was begun, or mend a completed one
	SkipValidation bool // leave out the pre-validation
}

// ErrNothing is that there is no onboarding to resume or to roll back.
var ErrNothing = errors.New("there is nothing to do")

// withState locks the target and works on the state that choose picks.
func (e *Engine) withState(ctx context.Context, purpose string, choose func(under, last *State) (*State, error), work func(*session) error) error {
	release, err := e.Store.lock(ctx, purpose)
	if err != nil {
		return err
	}
	defer release()
	st, err := e.Store.current()
	if err == nil && st != nil && st.finished() {
		err = e.Store.archive(st) // which an interruption had prevented
	}
	if err != nil {
		return err
	}
	under, last, err := e.Store.look()
	if err == nil {
		st, err = choose(under, last)
	}
	if err != nil {
		return err
	}
	with := *e
	if with.Events == nil {
		with.Events = event.NewStream()
	}
	return work(&session{Engine: &with, state: st})
}

// complete is an error if a phase has no runner.
func (e *Engine) complete() error {
	var lack []string
	for _, p := range phases {
		if e.Runners[p.ID] == nil {
			lack = append(lack, string(p.ID))
		}
	}
	if len(lack) > 0 {
		return fmt.Errorf("onboard: nothing runs %s", strings.Join(lack, ", "))
	}
	return nil
}

func (e *Engine) limit(id PhaseID) time.Duration {
	if d := e.Timeouts[id]; d > 0 {
		return d
	}
	return phases[slices.IndexFunc(phases, func(p Phase) bool { return p.ID == id })].Timeout
}

// bounded ends do after its budget. The error then says what do was busy with, and what it last reported.
func bounded(ctx context.Context, what string, budget time.Duration, told func() string, do func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	err := do(limited)
	if err == nil || limited.Err() == nil || ctx.Err() != nil {
		return err
	}
	if text := told(); text != "" {
		err = fmt.Errorf("%w; before that: %s", err, text)
	}
	return &wait.TimeoutError{What: what, Budget: budget, Last: err}
}

// stopwatch measures an attempt of a phase.
type stopwatch struct {
	phase  PhaseID
	began  time.Time
	before float64 // seconds that earlier attempts took
}

// count updates the phase's time.
func (w *stopwatch) count(st *State) {
	t := st.PhaseTimes[w.phase]
	t.Seconds = math.Round((w.before+time.Since(w.began).Seconds())*1000) / 1000
	st.PhaseTimes[w.phase] = t
}
