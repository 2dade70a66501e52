package join

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8slab/lab/event"
	"k8slab/lab/wait"
)

// The checks of a member, in the order from cause to effect.
const (
	checkKubelet    = "kubelet"            // active, and not standalone
	checkCluster    = "cluster"            // it serves the cluster of the pinned CA
	checkRole       = "role"               // it is what it was to become
	checkEtcd       = "etcd-member"        // a started voter
	checkAPI        = "api-server"         // its static pods are healthy
	checkController = "controller-manager" //
	checkScheduler  = "scheduler"          //
	checkNode       = "node"               // present, this machine's, Ready
)

// memberCheck is one check of a member. One that can be watched is followed until it holds; the others are asked again.
type memberCheck struct {
	id    string
	ask   func(context.Context) Check
	watch func(context.Context, func(Check) (enough bool)) error
}

// Validate asks once whether the machine is a healthy member of its cluster, and of the target's where that is given: kubelet active and not
// standalone, its Node present, this machine's and Ready, and on a control plane its etcd member a started voter and its static pods
// healthy. It changes nothing. The checks are in the order from cause to effect.
func Validate(ctx context.Context, m Machine, t Target) []Check {
	return each(newMember(m, t).checks(), func(c memberCheck) Check { return timed(ctx, c.id, c.ask) })
}

// await follows the checks until all hold or limit has passed, and returns the last of each.
func (w *member) await(ctx context.Context, limit time.Duration, report func(Check)) []Check {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return each(w.checks(), func(c memberCheck) Check {
		last := Check{ID: c.id, Result: Blocked, Evidence: "not checked"}
		said := ""
		see := func(now Check) bool {
			now.ID = c.id
			last = now
			if now.Result != OK && now.Evidence != said {
				said = now.Evidence
				report(now)
			}
			return now.Result == OK
		}
		_ = wait.For(ctx, c.id, limit, memberPoll, func(ctx context.Context) error {
			if c.watch == nil {
				if see(c.ask(ctx)) {
					return nil
				}
				return errUnproven
			}
			err := c.watch(ctx, see)
			if err != nil && ctx.Err() == nil {
				see(blocked("", "journalctl -u kubelet", "%v", err))
			}
			return err
		})
		last.Evidence, last.Hint = event.Redact(last.Evidence), event.Redact(last.Hint)
		return last
	})
}

// memberPoll is how often what cannot be watched is asked again.
const memberPoll = 250 * time.Millisecond

var errUnproven = errors.New("it does not hold yet")

// each makes all checks at once.
func each(checks []memberCheck, do func(memberCheck) Check) []Check {
	results := make([]Check, len(checks))
	var wg sync.WaitGroup
	for i, c := range checks {
		wg.Go(func() { results[i] = do(c) })
	}
	wg.Wait()
	return results
}

func timed(ctx context.Context, id string, ask func(context.Context) Check) Check {
	begin := time.Now()
	c := ask(ctx)
	c.ID, c.Elapsed = id, time.Since(begin).Round(time.Millisecond)
	c.Evidence, c.Hint = event.Redact(c.Evidence), event.Redact(c.Hint)
	return c
}

// prove waits until the new member is proven, and takes the placeholder of the pod network away when the real one has landed.
func (e *Engine) prove(ctx context.Context, job *Job, o *Outcome) bool {
	limit := job.Ready
	if limit == 0 {
		limit = readyLimit
	}
	step := e.step(job, phaseValidate, limit)
	checks := newMember(e.Machine, job.Target).await(ctx, limit, func(c Check) {
		step.Progress("waiting: %s: %s", c.ID, c.Evidence)
	})
	o.Phase, o.Checks = phaseValidate, append(o.Checks, checks...)
	if err := e.Machine.removePlaceholder(); err != nil {
		step.Progress("%v", err)
	}
	if bad := worst(checks); bad != nil {
		o.blame(*bad)
		_ = step.End(errorOf(*bad))
		return false
	}
	o.Joined = true
	step.EndWith("proven a healthy member")
	return true
}
