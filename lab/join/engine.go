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

// Engine makes attempts to join on one machine. What it leaves to others are functions: a nil one is left out.
type Engine struct {
	Machine Machine
	Events  *event.Stream
	Node    string // the machine's name in events

	// Preflight makes every check and changes nothing; report is told of each as it ends.
	Preflight func(ctx context.Context, m Machine, t Target, report func(Check)) []Check
	// Fix repairs what is Fixable and returns the checks made again.
	Fix func(ctx context.Context, m Machine, t Target, checks []Check, report func(Check)) []Check
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

// readyLimit bounds the validation: a Node is Ready when the pod network is there, which comes as a pod.
const readyLimit = 4 * time.Minute

// Attempt makes one attempt: nothing on a healthy member of the cluster, else preflight, prepare, kubeadm, validation.
func (e *Engine) Attempt(ctx context.Context, job *Job) Outcome {
	begin := time.Now()
	o := e.attempt(ctx, job)
	o.Elapsed, o.Endpoint = time.Since(begin).Round(time.Millisecond), job.Target.Endpoint
	if o.Symptom != "" && o.Hint == "" && e.Hint != nil {
		o.Hint = e.Hint(o.Symptom)
	}
	o.Evidence, o.Hint, o.Output = event.Redact(o.Evidence), event.Redact(o.Hint), event.Redact(o.Output)
	return o
}

func (e *Engine) attempt(ctx context.Context, job *Job) Outcome {
	o, done := e.already(ctx, job)
	for _, step := range []func(context.Context, *Job, *Outcome) bool{e.clean, e.preflight, e.prepare, e.kubeadm, e.prove} {
		if done {
			return o
		}
		done = !step(ctx, job, &o)
	}
	return o
}

// already tells whether the machine is a member: a healthy one of this cluster is left as it is, and one that serves another cluster, or in
// another role, is not taken away from there.
func (e *Engine) already(ctx context.Context, job *Job) (o Outcome, done bool) {
	o.ExitCode = -1
	if !e.Machine.Exists(kubeletConf) {
		return o, false
	}
	step := e.step(job, PhaseValidate, memberLimit)
	ctx, cancel := context.WithTimeout(ctx, memberLimit)
	defer cancel()
	checks := Validate(ctx, e.Machine, job.Target)
	o.Phase, o.Checks = PhaseValidate, checks
	bad := worst(checks)
	switch {
	case bad == nil:
		o.Joined, o.Already = true, true
		step.EndWith("already a healthy member; nothing is changed")
		return o, true
	case bad.ID == CheckCluster || bad.ID == CheckRole:
		o.blame(*bad)
		step.EndWith(bad.Evidence)
		return o, true
	}
	step.EndWith("not a healthy member: " + bad.Evidence)
	return Outcome{ExitCode: -1}, false
}

// memberLimit bounds the look at what may be a member already.
const memberLimit = 10 * time.Second

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

// preflight makes the checks, repairs what it can, and goes on when nothing is in the way. A cause that is certain ends it at once.
func (e *Engine) preflight(ctx context.Context, job *Job, o *Outcome) bool {
	if e.Preflight == nil {
		return true
	}
	step := e.step(job, PhasePreflight, 0)
	checks, bad := e.check(ctx, step, func(ctx context.Context, report func(Check)) []Check {
		return e.Preflight(ctx, e.Machine, job.Target, report)
	})
	if bad == nil {
		bad = worst(checks)
	}
	if bad != nil && bad.Result == Fixable && e.Fix != nil {
		// containerd, which Fix may restart, must find a pod network's configuration.
		if err := e.Machine.ensureCNI(); err != nil {
			step.Progress("%v", err)
		}
		checks, bad = e.check(ctx, step, func(ctx context.Context, report func(Check)) []Check {
			return e.Fix(ctx, e.Machine, job.Target, checks, report)
		})
	}
	if bad == nil || bad.Result == Fixable {
		bad = worst(checks)
	}
	o.Phase, o.Checks = PhasePreflight, checks
	if bad != nil {
		o.blame(*bad)
		_ = step.End(errorOf(*bad))
		return false
	}
	if err := ctx.Err(); err != nil {
		o.Evidence = context.Cause(ctx).Error()
		_ = step.End(err)
		return false
	}
	step.EndWith("")
	return true
}

// abandonAfter is how long checks that were told to end may take to do so: their cause is known, nobody waits for them.
const abandonAfter = 200 * time.Millisecond

// check runs checks and stops waiting for the rest when one is Blocked, which it returns.
func (e *Engine) check(ctx context.Context, step *event.Step, run func(context.Context, func(Check)) []Check) ([]Check, *Check) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	blocked := make(chan Check, 1)
	done := make(chan []Check, 1)
	go func() {
		done <- run(ctx, func(c Check) {
			if ctx.Err() != nil {
				return // it says no more than that it was told to end
			}
			if c.telling() {
				step.Progress("%s", describe(c))
			}
			if c.Result == Blocked {
				cancel()
				blocked <- c
			}
		})
	}()
	select {
	case checks := <-done:
		return checks, nil
	case c := <-blocked:
		select {
		case checks := <-done:
			return checks, &c
		case <-time.After(abandonAfter):
			return []Check{c}, &c
		}
	}
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

// telling tells whether a person who waits for the join should read of the check. What could only not be checked has its cause elsewhere.
func (c Check) telling() bool {
	return c.Fixed != "" || c.Result != OK && (c.Result != Warn || c.Symptom != "")
}

func errorOf(c Check) error {
	return fmt.Errorf("%s: %s", cmp.Or(string(c.Symptom), string(c.ID)), c.Evidence)
}
