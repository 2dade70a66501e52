package onboard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"k8slab/lab/event"
)

// Journal is how a phase makes changes and reports. It is safe for concurrent use.
type Journal struct {
	session *session
	phase   PhaseID
	step    *event.Step

	mu     sync.Mutex
	last   string
	absent string // why the phase does not apply
}

// NotApplicable says that the phase had nothing to check or to do, and why. A phase that then ends without error does not count as
// completed.
func (j *Journal) NotApplicable(why string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.absent = why
}

func (j *Journal) notApplicable() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.absent
}

// Do makes a change once, whatever interrupts it and however often it is called. isMade checks whether the change is made already; do makes
// it. The caller sets the change's Kind, Params, What and Undo. The journal records the change as intended before it is made, and as made
// after it, so a rollback knows of everything that may have happened. A change that is made but not in the journal does not belong to this
// onboarding, and a rollback leaves it.
func (j *Journal) Do(ctx context.Context, c Change, isMade func(context.Context) (bool, error), do func(context.Context) error) error {
	c.Phase = j.phase
	if err := j.acceptable(c); err != nil {
		return err
	}
	before := j.session.status(c)
	made, err := isMade(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("%s: check whether it is already done: %w", c.What, err)
	case made && before == "":
		j.Debug("%s: it was so before", c.What)
		return nil
	case made && before == Made:
		j.Debug("%s: it is still so", c.What)
		return nil
	case made: // by an attempt that was interrupted before it could say so
		return j.session.note(c, Made)
	}
	if err := j.session.note(c, Intended); err != nil {
		return err
	}
	if err := do(ctx); err != nil {
		return fmt.Errorf("%s: %w", c.What, err)
	}
	j.Info("%s: done", c.What)
	return j.session.note(c, Made)
}

// acceptable refuses a change that could not be undone, or not be read from the file again.
func (j *Journal) acceptable(c Change) error {
	if j.session.Undoers[c.Kind] == nil {
		return fmt.Errorf("%s: nothing can undo a change of the kind %q, so it is not made", c.What, c.Kind)
	}
	for name, value := range c.Params {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return fmt.Errorf("%s: parameter %q is %q, which is not text, so the change cannot be recorded and is not made", c.What, name, value)
		}
	}
	return nil
}

// Info reports what goes on. A time-out shows the last report.
func (j *Journal) Info(format string, args ...any) { j.say("", format, args...) }

// Warn reports a problem that does not stop the onboarding.
func (j *Journal) Warn(format string, args ...any) { j.say(warnMark, format, args...) }

// Debug reports details that are only needed to find a fault.
func (j *Journal) Debug(format string, args ...any) { j.say(debugMark, format, args...) }

func (j *Journal) say(mark, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	j.step.Progress("%s%s", mark, text)
	if mark != debugMark {
		j.mu.Lock()
		j.last = text
		j.mu.Unlock()
	}
}

func (j *Journal) seen() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}

// session is one process's work on a state, whose lock it holds.
type session struct {
	*Engine

	mu     sync.Mutex
	state  *State // as it is on the disk
	timing *stopwatch
}

// update changes the state and writes it. When that fails the state stays what it was.
func (s *session) update(change func(*State)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.state.clone()
	if s.timing != nil {
		s.timing.count(next)
	}
	change(next)
	next.Timestamp = now()
	if err := s.Store.save(next); err != nil {
		return err
	}
	s.state = next
	return nil
}

// status is where a change stands, "" for one that is not in the journal.
func (s *session) status(c Change) Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.state.Changes, c.same); i >= 0 {
		return s.state.Changes[i].Status
	}
	return ""
}

// note records the status of a change.
func (s *session) note(c Change, status Status) error {
	return s.update(func(st *State) {
		i := slices.IndexFunc(st.Changes, c.same)
		if i < 0 {
			i = len(st.Changes)
			st.Changes = append(st.Changes, c)
		}
		st.Changes[i].Status, st.Changes[i].Time = status, now()
	})
}

// Marks in the progress events of an onboarding.
const (
	warnMark  = "warning: "
	debugMark = "debug: "
	beatMark  = "still running" // the stream's own words while a step is silent
)

// Level is an event of an onboarding as a level of a log: INFO, WARN, ERROR, SUCCESS, DEBUG, or PROGRESS, which is the start of a step and
// the passing of time. DEBUG is for those who ask for it.
func Level(e event.Event) string {
	is := func(mark string) bool { return e.State == event.Progress && strings.HasPrefix(e.Detail, mark) }
	switch {
	case e.State == event.Failed:
		return "ERROR"
	case e.State == event.Done:
		return "SUCCESS"
	case e.State == event.Started || is(beatMark):
		return "PROGRESS"
	case is(warnMark):
		return "WARN"
	case is(debugMark):
		return "DEBUG"
	}
	return "INFO"
}
