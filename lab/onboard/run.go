package onboard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8slab/lab/event"
)

// Run takes the node into the cluster, or goes on with that. It stops at the first phase that fails; what was done stays, for a resumed run
// or a rollback. A phase that was completed before is verified, and run again when it no longer holds.
func (e *Engine) Run(ctx context.Context, o Options) error {
	if err := e.complete(); err != nil {
		return err
	}
	choose := func(under, last *State) (*State, error) { return toRun(e.Store.target, under, last, o) }
	return e.withState(ctx, "labctl onboard", choose, func(s *session) error { return s.run(ctx, o) })
}

// toRun is the state that a run works on.
func toRun(t Target, under, last *State, o Options) (*State, error) {
	completed := last != nil && last.Status == Completed
	switch {
	case under != nil && under.Status == RollingBack:
		return nil, fmt.Errorf("the onboarding of %s is half rolled back: finish that with --rollback, then start again", t.Node)
	case under != nil && !o.Resume:
		return nil, fmt.Errorf("the onboarding of %s was begun at %s and is not finished: continue with --resume, or undo it with --rollback",
			t.Node, clock(under.Started))
	case under != nil:
		return under, nil
	case completed && !o.Resume:
		return nil, fmt.Errorf("%s was onboarded at %s: re-check and fix it with --resume, or remove the node with --rollback",
			t.Node, clock(last.Timestamp))
	case completed:
		again := last.clone()
		again.Status = InProgress
		return again, nil
	case o.Resume:
		return nil, fmt.Errorf("resume the onboarding of %s: %w: none was begun, or it was rolled back; start one without --resume", t.Node, ErrNothing)
	}
	return newState(t), nil
}

func clock(t time.Time) string { return t.Local().Format(time.DateTime) }

func (s *session) run(ctx context.Context, o Options) error {
	for i, p := range phases {
		where := fmt.Sprintf("phase %d of %d, %s", i+1, len(phases), p.ID)
		if ctx.Err() != nil {
			return s.stopped(fmt.Errorf("interrupted before %s: %w", where, context.Cause(ctx)))
		}
		step := s.Events.Start(s.Store.target.Node, string(p.ID), s.limit(p.ID))
		err := step.End(s.phase(ctx, p, &Journal{session: s, phase: p.ID, step: step}, o))
		switch {
		case err != nil && ctx.Err() != nil:
			return s.stopped(fmt.Errorf("interrupted in %s: %w", where, err))
		case err != nil:
			return s.stopped(fmt.Errorf("%s: %w\nimpact: %s", where, err, p.Impact))
		}
	}
	return s.finish(Completed)
}

func (s *session) stopped(err error) error {
	return fmt.Errorf("onboard %s: %w\nnext: fix that and continue with --resume, or undo what was done with --rollback", s.Store.target.Node, err)
}

// finish ends the onboarding for good.
func (s *session) finish(status Status) error {
	if err := s.update(func(st *State) { st.Status, st.CurrentPhase = status, "" }); err != nil {
		return err
	}
	return s.Store.archive(s.state)
}

// phase sees to it that a phase is completed, or skipped.
func (s *session) phase(ctx context.Context, p Phase, j *Journal, o Options) error {
	status := s.state.PhaseStatus[p.ID]
	switch {
	case p.ID == PreValidation && (o.SkipValidation || status == Skipped):
		return s.skip(p.ID, status, j.step)
	case status == Completed:
		err := bounded(ctx, "verify "+string(p.ID), s.limit(p.ID), j.seen, s.Runners[p.ID].Verify)
		if err == nil {
			j.step.EndWith("verified: what was completed at " + clock(s.state.PhaseTimes[p.ID].Ended) + " still holds")
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		err = fmt.Errorf("what was completed no longer holds: %w", err)
		j.Warn("%v; the phase runs again", err)
		return s.attempt(ctx, p.ID, j, err)
	case status == InProgress:
		j.Info("an earlier attempt was interrupted; the phase runs again")
	}
	return s.attempt(ctx, p.ID, j, nil)
}

// skip records that the pre-validation was not wanted. One that was completed stays so.
func (s *session) skip(id PhaseID, status Status, step *event.Step) error {
	if status != Skipped && status != Completed {
		err := s.update(func(st *State) { st.CurrentPhase = id; st.set(id, Skipped, nil) })
		if err != nil {
			return err
		}
	}
	step.EndWith("skipped, as --skip-validation says")
	return nil
}

// attempt runs a phase; why is what was wrong with its completed state, if it had one.
func (s *session) attempt(ctx context.Context, id PhaseID, j *Journal, why error) error {
	watch := &stopwatch{phase: id, began: time.Now(), before: s.state.PhaseTimes[id].Seconds}
	err := s.update(func(st *State) {
		if why != nil {
			st.record(id, why)
		}
		t := st.PhaseTimes[id]
		if t.Attempts == 0 {
			t.Started = now()
		}
		t.Attempts, t.Ended = t.Attempts+1, time.Time{}
		st.PhaseTimes[id] = t
		st.CurrentPhase = id
		st.set(id, InProgress, nil)
	})
	if err != nil {
		return err
	}
	s.timing = watch
	err = bounded(ctx, "phase "+string(id), s.limit(id), j.seen, func(ctx context.Context) error { return s.Runners[id].Run(ctx, j) })
	missing := j.notApplicable()
	if err != nil || missing == "" {
		return s.ended(ctx, id, err, Completed)
	}
	if err := s.ended(ctx, id, nil, NotApplicable); err != nil {
		return err
	}
	j.step.EndWith("not applicable: " + missing)
	return nil
}

// ended writes down how an attempt ended, with the status that it has without an error. An interrupted one leaves the phase in progress, as a
// killed one does.
func (s *session) ended(ctx context.Context, id PhaseID, err error, well Status) error {
	interrupted := err != nil && ctx.Err() != nil
	saved := s.update(func(st *State) {
		t := st.PhaseTimes[id]
		t.Ended = now()
		st.PhaseTimes[id] = t
		switch {
		case interrupted:
			st.record(id, fmt.Errorf("interrupted: %w", err))
		case err != nil:
			st.record(id, err)
			st.set(id, Failed, err)
		default:
			st.set(id, well, nil)
		}
	})
	s.timing = nil
	return joined(err, saved)
}

// joined is the error of some work, and that of writing it down.
func joined(err, saved error) error {
	switch {
	case saved == nil:
		return err
	case err == nil:
		return fmt.Errorf("write down how it ended: %w", saved)
	}
	return fmt.Errorf("%w; and writing that down: %w", err, saved)
}

// Planned is what a run would do about one phase.
type Planned struct {
	Phase   PhaseID  `json:"phase"`
	Title   string   `json:"title"`
	Purpose string   `json:"purpose"`
	Note    string   `json:"note,omitempty"` // why it is skipped, or run again
	Steps   []string `json:"steps"`          // what is done; none for what is skipped
}

// Plan is a dry run: it lists what Run would do with the options, and writes nothing at all, not even a lock. It refuses what Run refuses.
// When phases cannot tell, the others still do; all errors are returned.
func (e *Engine) Plan(ctx context.Context, o Options) ([]Planned, error) {
	if err := e.complete(); err != nil {
		return nil, err
	}
	under, last, err := e.Store.look()
	if err != nil {
		return nil, err
	}
	st, err := toRun(e.Store.target, under, last, o)
	if err != nil {
		return nil, err
	}
	var plan []Planned
	var errs []error
	for _, p := range phases {
		one, err := e.plan(ctx, st, p, o)
		if err != nil {
			errs = append(errs, fmt.Errorf("plan %s: %w", p.ID, err))
		}
		plan = append(plan, one)
	}
	return plan, errors.Join(errs...)
}

func (e *Engine) plan(ctx context.Context, st *State, p Phase, o Options) (Planned, error) {
	one := Planned{Phase: p.ID, Title: p.Title, Purpose: p.Purpose, Steps: []string{}}
	nothing := func() string { return "" }
	switch status := st.PhaseStatus[p.ID]; {
	case p.ID == PreValidation && (o.SkipValidation || status == Skipped):
		one.Note = "skipped, as --skip-validation says"
		return one, nil
	case status == Completed:
		err := bounded(ctx, "verify", e.limit(p.ID), nothing, e.Runners[p.ID].Verify)
		if err == nil {
			one.Note = "skipped: what was completed at " + clock(st.PhaseTimes[p.ID].Ended) + " still holds"
			return one, nil
		}
		one.Note = fmt.Sprintf("again: what was completed no longer holds: %v", err)
	case status == NotApplicable:
		one.Note = "again: it was not applicable"
	case status != NotStarted:
		one.Note = "again: the last attempt did not end well"
	}
	err := bounded(ctx, "plan", e.limit(p.ID), nothing, func(ctx context.Context) (err error) {
		one.Steps, err = e.Runners[p.ID].Plan(ctx)
		return err
	})
	return one, err
}
