package phase

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8slab/lab/onboard"
	"k8slab/lab/validate"
)

// looking is a phase that makes checks and changes nothing but test objects, which it removes.
type looking struct {
	id     onboard.PhaseID
	node   string
	checks func() []validate.Check
	await  bool // what fails may hold soon; else the checks are made once
	later  bool // what its checks try, a later phase of the same run tries too
	seen   *Evidence
	first  func(context.Context) error // what goes before the checks; nil for nothing
	last   func(context.Context) error // what follows checks that passed
}

// testKind is the change that test objects are. They are gone when it is made, but for those of a killed process.
const testKind = "test-objects"

// trying is work with test objects for a node. They are in the journal, because a process that is killed leaves them.
func trying(ctx context.Context, j *onboard.Journal, node string, work func(context.Context) error) error {
	never := func(context.Context) (bool, error) { return false, nil }
	return j.Do(ctx, testObjectsOf(node), never, work)
}

func testObjectsOf(node string) onboard.Change {
	return onboard.Change{
		Kind: testKind, Params: map[string]string{"owner": Owner(node)},
		What: "test it with temporary objects, and remove them", Undo: "remove leftover test objects, if any",
	}
}

func tries(c validate.Check) bool { return c.Tries }

// Plan lists the checks.
func (l *looking) Plan(context.Context) ([]string, error) {
	var steps []string
	for _, c := range l.checks() {
		steps = append(steps, fmt.Sprintf("check %s: %s", c.Area, c.Name))
	}
	return steps, nil
}

// Run makes the checks until none fails.
func (l *looking) Run(ctx context.Context, j *onboard.Journal) error {
	var judged error
	work := func(ctx context.Context) error {
		judged = l.steps(ctx, j)
		return nil // the objects are gone, whatever was found
	}
	var err error
	if slices.ContainsFunc(l.checks(), tries) {
		err = trying(ctx, j, l.node, work)
	} else {
		err = work(ctx)
	}
	return either(judged, err)
}

// either is the first of two errors that there is.
func either(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

func (l *looking) steps(ctx context.Context, j *onboard.Journal) error {
	if l.first != nil {
		if err := l.first(ctx); err != nil {
			return err
		}
	}
	if err := l.look(ctx, j); err != nil || l.last == nil {
		return err
	}
	return l.last(ctx)
}

func (l *looking) look(ctx context.Context, j *onboard.Journal) error {
	var findings []validate.Finding
	var err error
	if l.await {
		findings, err = validate.Await(ctx, string(l.id), l.checks(), func(text string) { j.Info("not yet: %s", text) })
	} else {
		findings = validate.Run(ctx, l.checks())
	}
	if saved := l.seen.keep(l.id, findings); saved != nil {
		j.Warn("the findings are not kept for a report: %v", saved)
	}
	tell(j, findings)
	if len(findings) > 0 && !slices.ContainsFunc(findings, applies) {
		j.NotApplicable(findings[0].Detail)
	}
	return either(failed(findings), err)
}

func applies(f validate.Finding) bool { return f.Status != validate.NotApplicable }

// Verify makes the checks once, without those that a later phase repeats or verifies.
func (l *looking) Verify(ctx context.Context) error {
	checks := l.checks()
	if l.later {
		checks = slices.DeleteFunc(checks, tries)
	}
	return failed(validate.Run(ctx, checks))
}

// tell shows what did not fail: failures are the phase's error.
func tell(j *onboard.Journal, findings []validate.Finding) {
	for _, f := range findings {
		switch f.Status {
		case validate.Passed:
			j.Debug("passed: %s: %s", f.Check, f.Detail)
		case validate.NotApplicable:
			j.Info("not applicable: %s: %s", f.Check, f.Detail)
		case validate.Warned:
			j.Warn("%s", line(f))
		}
	}
}

// failed is an error that lists every failure; nil without one.
func failed(findings []validate.Finding) error {
	var bad []string
	for _, f := range findings {
		if f.Status == validate.Failed {
			bad = append(bad, line(f))
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d checks failed:\n  %s", len(bad), len(findings), strings.Join(bad, "\n  "))
}

func line(f validate.Finding) string {
	text := fmt.Sprintf("%s: %s: %s", f.Area, f.Check, f.Detail)
	if f.Next != "" {
		text += "; next: " + f.Next
	}
	return text
}

// leftovers removes test objects of processes that were killed.
type leftovers struct{ cluster testObjects }

type testObjects interface {
	Leftovers(ctx context.Context) ([]validate.Leftover, error)
	RemoveLeftovers(ctx context.Context, owner string) error
}

func (l leftovers) Undo(ctx context.Context, c onboard.Change) error {
	return l.cluster.RemoveLeftovers(ctx, c.Params["owner"])
}

func (l leftovers) Verify(ctx context.Context, c onboard.Change) error {
	all, err := l.cluster.Leftovers(ctx)
	if err != nil {
		return err
	}
	for _, left := range all {
		if left.Owner == c.Params["owner"] {
			return fmt.Errorf("the namespace %s is left", left.Namespace)
		}
	}
	return nil
}
