package join

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8slab/lab/event"
	"k8slab/lab/wait"
)

// Validate asks once whether the machine is a healthy member of its cluster, and of the target's where that is given: kubelet active and
// not standalone, its Node present, this machine's and Ready, and on a control plane its etcd member a started voter and its static pods
// healthy. It changes nothing. The checks are in the order from cause to effect.
func Validate(ctx context.Context, m Machine, t Target) []Check {
	w := newMember(m, t)
	return each(w.checks(), func(pr probe) Check { return w.timed(ctx, pr) })
}

// await follows the checks until all hold or limit has passed, and returns the last of each.
func (w *member) await(ctx context.Context, limit time.Duration, report func(Check)) []Check {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return each(w.checks(), func(pr probe) Check {
		last := Check{ID: pr.id, Result: Blocked, Evidence: "not checked"}
		said := ""
		see := func(now Check) bool {
			now.ID = pr.id
			last = now
			if now.Result != OK && now.Evidence != said {
				said = now.Evidence
				report(now)
			}
			return now.Result == OK
		}
		_ = wait.For(ctx, string(pr.id), limit, memberPoll, func(ctx context.Context) error {
			if pr.watch == nil {
				if see(pr.ask(w, ctx)) {
					return nil
				}
				return errUnproven
			}
			err := pr.watch(w, ctx, see)
			if err != nil && ctx.Err() == nil {
				see(blocked("", "journalctl -u kubelet", "%v", err))
			}
			return err
		})
		last.Evidence, last.Hint = event.Redact(last.Evidence), event.Redact(last.Hint)
		return last
	})
}

// memberAnswer is how long one look waits for an answer: an API server without its etcd gives none.
const memberAnswer = 4 * time.Second

// memberPoll is how often what cannot be watched is asked again.
const memberPoll = 250 * time.Millisecond

var errUnproven = errors.New("it does not hold yet")

// each makes all checks at once.
func each(checks []probe, do func(probe) Check) []Check {
	results := make([]Check, len(checks))
	var wg sync.WaitGroup
	for i, c := range checks {
		wg.Go(func() { results[i] = do(c) })
	}
	wg.Wait()
	return results
}

func (w *member) timed(ctx context.Context, pr probe) Check {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, w.m.Patience()*memberAnswer)
	defer cancel()
	c := pr.ask(w, ctx)
	c.ID, c.Elapsed = pr.id, time.Since(begin).Round(time.Millisecond)
	c.Evidence, c.Hint = event.Redact(c.Evidence), event.Redact(c.Hint)
	return c
}
