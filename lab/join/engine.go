package join

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"k8slab/lab/event"
	"k8slab/lab/symptom"
)

// Engine makes attempts to join on one machine. Its functions are optional: an attempt leaves out those that are nil.
type Engine struct {
	Machine Machine
	Events  *event.Stream
	Node    string // the machine's name in events

	// Preflight makes every check and changes nothing; report is told of each as it ends.
	Preflight func(ctx context.Context, m Machine, t Target, report func(Check)) []Check
	// Repair repairs what is Fixable and returns the checks made again.
	Repair func(ctx context.Context, m Machine, t Target, checks []Check, report func(Check)) []Check
	// Certain names the cause of a failure that no waiting will cure, from one line of a log.
	Certain func(line string) (symptom.ID, bool)
	// Causes names the causes that a text shows, the likeliest first.
	Causes func(text string) []symptom.ID
	// Hint is what to do about a cause, with exact commands.
	Hint func(symptom.ID) string
	// Ended is told of each attempt of a series that has ended, but not of a look at a healthy member. Its error is only a warning.
	Ended func(Outcome) error

	// Kubeadm and Journal are the programs, for tests; empty is the machine's kubeadm, and journalctl.
	Kubeadm, Journal []string
}

// Job is one attempt.
type Job struct {
	Config        *Configuration
	Target        Target
	Node          string        // its name in the cluster
	Number, Of    int           // of the series
	Ready         time.Duration // how long the Node may take to be proven Ready; 0 is readyLimit
	MemberRemoved bool          // the machine's earlier etcd member was removed from the cluster
}

// readyLimit bounds the validation. It is long because a Node becomes Ready only after the pod network's own pod has started.
const readyLimit = 4 * time.Minute

func (e *Engine) step(job *Job, phase Phase, limit time.Duration) *event.Step {
	st := e.Events.Start(e.Node, string(phase), limit)
	if job.Of > 1 || job.Number > 1 {
		st.Progress("attempt %d of %d", job.Number, max(job.Number, job.Of))
	}
	return st
}

// blame makes a check's cause the outcome's.
func (o *Outcome) blame(c Check) {
	o.Symptom, o.Evidence, o.Hint = c.Symptom, c.Evidence, c.Hint
}

// worst is the first check that stops a join, nil for none.
func worst(checks []Check) *Check {
	for _, result := range []Result{Blocked, Fixable} {
		for i := range checks {
			if checks[i].Result == result {
				return &checks[i]
			}
		}
	}
	return nil
}

// CauseMark begins the detail of the events that name a cause: MARK, ID, ": ", evidence.
const CauseMark = "cause: "

// NamesCause reports whether the detail of an event of a join is the cause of a failure.
func NamesCause(detail string) bool { return strings.HasPrefix(detail, CauseMark) }

// describe is a check in one line.
func describe(c Check) string {
	switch {
	case c.Fixed != "" && c.Result == OK:
		return string(c.ID) + ": repaired: " + c.Fixed
	case c.Symptom != "" && c.Result != Warn:
		return CauseMark + string(c.Symptom) + ": " + c.Evidence
	}
	return strings.TrimSuffix(fmt.Sprintf("%s: %s: %s", c.ID, c.Result, c.Evidence), ": ")
}

// telling tells whether the check interests a person who waits for the join. A check that could not run does not: another one has the
// cause.
func (c Check) telling() bool {
	return c.Fixed != "" || c.Result != OK && (c.Result != Warn || c.Symptom != "")
}

func errorOf(c Check) error {
	return fmt.Errorf("%s: %s", cmp.Or(string(c.Symptom), string(c.ID)), c.Evidence)
}
