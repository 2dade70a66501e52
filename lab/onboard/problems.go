package onboard

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// nodeName is an RFC 1123 subdomain, as the names of Nodes are: nothing in it has a meaning to a path.
var nodeName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)

// Check refuses a target that cannot be one.
func (t Target) Check() error {
	if found := t.problems(); len(found) > 0 {
		return fmt.Errorf("onboard: %s", strings.Join(found, "; "))
	}
	return nil
}

// problems are what a target lacks.
func (t Target) problems() []string {
	var found []string
	if len(t.Node) > 253 || !nodeName.MatchString(t.Node) {
		found = append(found, fmt.Sprintf("node %.80q is not the name of a Node", t.Node))
	}
	if t.Role != "control-plane" && t.Role != "worker" {
		found = append(found, fmt.Sprintf("role %.80q is neither control-plane nor worker", t.Role))
	}
	// It names a directory, and comes from the cluster.
	if id, err := uuid.Parse(t.ClusterID); err != nil || id.String() != t.ClusterID {
		found = append(found, fmt.Sprintf("cluster_id %.80q is not a UUID", t.ClusterID))
	}
	return found
}

// problems are the contradictions in a state: no run leaves any. All of them are listed.
func (s *State) problems() []string {
	c := check{State: s, found: s.Target.problems()}
	c.phases()
	c.times()
	c.errors()
	c.changes()
	c.whole()
	return c.found
}

type check struct {
	*State
	found []string
}

func (c *check) report(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

func (c *check) phases() {
	for _, p := range phases {
		status, ok := c.PhaseStatus[p.ID]
		text, hasText := c.PhaseErrors[p.ID]
		switch {
		case !ok || !hasText:
			c.report("phase_status or phase_errors lacks %s", p.ID)
		case !slices.Contains([]Status{NotStarted, InProgress, Completed, Failed, Skipped, NotApplicable}, status):
			c.report("%s is %.80q, which no phase can be", p.ID, status)
		case status == Skipped && p.ID != PreValidation:
			c.report("%s is skipped, and only %s may be", p.ID, PreValidation)
		case status == InProgress && (c.Status != InProgress || c.CurrentPhase != p.ID):
			c.report("%s is in progress, and the current phase of the onboarding, which is %.80q, is %.80q", p.ID, c.Status, c.CurrentPhase)
		case status == Failed && text == "":
			c.report("%s has failed without an error", p.ID)
		case status != Failed && text != "":
			c.report("%s is %s and has failed with %.80q", p.ID, status, text)
		}
	}
	c.strangers("phase_status", unknown(c.PhaseStatus))
	c.strangers("phase_errors", unknown(c.PhaseErrors))
	c.strangers("phase_times", unknown(c.PhaseTimes))
	if c.CurrentPhase != "" && !known(c.CurrentPhase) {
		c.report("current_phase is %.80q, which is not a phase", c.CurrentPhase)
	}
	if c.CompletedPhases != c.count(Completed) || c.FailedPhases != c.count(Failed) || c.TotalPhases != len(phases) {
		c.report("%d completed and %d failed of %d phases are counted, and there are %d, %d and %d",
			c.CompletedPhases, c.FailedPhases, c.TotalPhases, c.count(Completed), c.count(Failed), len(phases))
	}
}

// unknown are the keys that name no phase, in order.
func unknown[V any](m map[PhaseID]V) []PhaseID {
	var ids []PhaseID
	for id := range m {
		if !known(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (c *check) strangers(field string, ids []PhaseID) {
	for _, id := range ids {
		c.report("%s has %.80q, which is not a phase", field, id)
	}
}

func (c *check) times() {
	for _, p := range phases {
		status := c.PhaseStatus[p.ID]
		t, ran := c.PhaseTimes[p.ID]
		switch {
		case ran && status == NotStarted:
			c.report("%s was not started and took time", p.ID)
		case !ran && (status == InProgress || status == Completed || status == Failed || status == NotApplicable):
			c.report("%s is %s and has no times", p.ID, status)
		case ran && (t.Attempts < 1 || t.Seconds < 0 || t.Started.IsZero()):
			c.report("%s took %v s in %d attempts from %v on", p.ID, t.Seconds, t.Attempts, t.Started)
		}
	}
	if c.Started.IsZero() || c.Timestamp.IsZero() {
		c.report("started or timestamp is missing")
	}
}

func (c *check) errors() {
	if len(c.Errors) > maxErrors {
		c.report("there are %d errors, more than the %d that are kept", len(c.Errors), maxErrors)
	}
	for i, e := range c.Errors {
		if !known(e.Phase) || e.Error == "" || e.Time.IsZero() {
			c.report("errors[%d] has no phase, time or text", i)
		}
	}
}

func (c *check) changes() {
	for i, ch := range c.Changes {
		undoing := c.Status == RollingBack || c.Status == RolledBack
		switch {
		case !known(ch.Phase) || ch.Kind == "" || ch.Time.IsZero():
			c.report("changes[%d] has no phase, kind or time", i)
		case c.PhaseStatus[ch.Phase] == NotStarted:
			c.report("changes[%d] is of %s, which was not started", i, ch.Phase)
		case ch.Status == Undone && !undoing:
			c.report("changes[%d] is undone without a rollback", i)
		case ch.Status != Undone && c.Status == RolledBack:
			c.report("changes[%d] is %.80q after the rollback", i, ch.Status)
		case ch.Status != Intended && ch.Status != Made && ch.Status != Undone:
			c.report("changes[%d] is %.80q, which no change can be", i, ch.Status)
		}
		if slices.ContainsFunc(c.Changes[:i], ch.same) {
			c.report("changes[%d] is there twice", i)
		}
	}
}

// whole is what must hold of the onboarding as one.
func (c *check) whole() {
	switch c.Status {
	case InProgress, RollingBack:
	case Completed, RolledBack:
		if c.CurrentPhase != "" {
			c.report("the onboarding is %s and still in %.80q", c.Status, c.CurrentPhase)
		}
	default:
		c.report("status is %.80q, which no onboarding can be", c.Status)
	}
	if done := c.count(Completed) + c.count(Skipped) + c.count(NotApplicable); c.Status == Completed && done != len(phases) {
		c.report("the onboarding is completed and %d phases are not", len(phases)-done)
	}
}
