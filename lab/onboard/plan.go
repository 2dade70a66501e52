package onboard

import (
	"context"
	"errors"
	"fmt"
)

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
