package join

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8slab/lab/event"
)

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
	if bad != nil && bad.Result == Fixable && e.Repair != nil {
		// A repair may restart containerd, which then must find a configuration of the pod network.
		if err := e.Machine.ensureCNI(); err != nil {
			step.Progress("%v", err)
		}
		checks, bad = e.check(ctx, step, func(ctx context.Context, report func(Check)) []Check {
			return e.Repair(ctx, e.Machine, job.Target, checks, report)
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

// abandonAfter is how long cancelled checks may take to end. The cause is known by then, so nobody waits longer for them.
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
				return // a cancelled check only says that it was cancelled
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

// prove waits until the new member is proven, and takes the placeholder of the pod network away when the real one has landed.
func (e *Engine) prove(ctx context.Context, job *Job, o *Outcome) bool {
	limit := job.Ready
	if limit == 0 {
		limit = readyLimit
	}
	step := e.step(job, PhaseValidate, limit)
	proof, end := context.WithCancel(ctx)
	defer end()
	kubelet := &registering{engine: e, shown: newRepeats(), end: end}
	go kubelet.follow(proof, step)
	checks := newMember(e.Machine, job.Target).await(proof, limit, func(c Check) {
		kubelet.see(c)
		step.Progress("waiting: %s: %s", c.ID, c.Evidence)
	})
	o.Phase, o.Checks = PhaseValidate, append(o.Checks, checks...)
	if err := e.Machine.removePlaceholder(); err != nil {
		step.Progress("%v", err)
	}
	if bad := worst(checks); bad != nil {
		o.blame(*bad)
		kubelet.blame(o)
		_ = step.End(fmt.Errorf("%s: %s", cmp.Or(string(o.Symptom), string(bad.ID)), o.Evidence))
		return false
	}
	o.Joined = true
	step.EndWith("proven a healthy member")
	return true
}
