package join

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8slab/lab/event"
)

// repairLimit bounds one repair; containerd's has a budget of its own besides. Stopping kubelet may take a while.
const repairLimit = 60 * time.Second

// RepairPreflight repairs what Preflight found fixable, one check after another from cause to effect, and nothing else. It makes each
// repaired check again; Fixed says what it did. A check whose repair is not safe, or did not help, becomes Blocked with a command for a
// person. report, if not nil, gets each check when it ends. The result has all checks, sorted as Preflight's; all are made again after a
// repair.
//
// Every repair can run twice without harm, keeps the old content of a file that it changes (FILE.k8slab-saved), and looks at the machine
// before it acts, because the checks may be old.
func RepairPreflight(ctx context.Context, m Machine, t Target, checks []Check, report func(Check)) []Check {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := slices.Clone(checks)
	treated := map[CheckID]Check{}
	for _, pr := range before(t) {
		i := slices.IndexFunc(results, func(c Check) bool { return c.ID == pr.id && c.Result == Fixable })
		if i < 0 || pr.repair == nil || ctx.Err() != nil {
			continue
		}
		results[i] = repair(ctx, m, t, pr, results[i])
		treated[pr.id] = results[i]
		if report != nil {
			report(results[i])
		}
	}
	if len(treated) > 0 && ctx.Err() == nil {
		results = recheck(ctx, m, t, treated)
	}
	rank(results)
	return results
}

// recheck makes all checks again after the repairs, because some could not be made before, and keeps what the repairs said.
func recheck(ctx context.Context, m Machine, t Target, treated map[CheckID]Check) []Check {
	now := Preflight(ctx, m, t, nil)
	for i, c := range now {
		was, ok := treated[c.ID]
		switch {
		case !ok:
		case c.Result == Fixable: // the repair has said why it failed
			now[i] = was
		default:
			now[i].Fixed = was.Fixed
		}
	}
	return now
}

// repair fixes what one check found, and checks again with fresh eyes.
func repair(ctx context.Context, m Machine, t Target, pr probe, found Check) Check {
	start := m.Now()
	now := newPreflight(ctx, m, t).one(ctx, pr)
	if now.Result == OK { // another repair has repaired it, or it passed by itself
		now.Fixed = "nothing: the check passes again"
		return now
	}
	limit, cancel := context.WithTimeoutCause(ctx, repairLimit+containerdBudget(), errors.New("the repair took too long"))
	defer cancel()
	did, err := pr.repair(limit, newPreflight(ctx, m, t))
	if err != nil {
		return unrepaired(found, err, m.Now().Sub(start))
	}
	after := newPreflight(ctx, m, t).one(ctx, pr)
	after.Fixed, after.Elapsed = event.Redact(did), m.Now().Sub(start)
	if after.Result == Fixable {
		after.Result = Blocked
		after.Evidence += "; the repair did not help"
	}
	return after
}

func unrepaired(found Check, err error, elapsed time.Duration) Check {
	found.Result, found.Elapsed = Blocked, elapsed
	if r, refused := errors.AsType[*refusal](err); refused {
		found.Hint = event.Redact(r.hint)
		found.Evidence += "; not repaired: " + event.Redact(r.why)
		return found
	}
	found.Evidence += "; the repair failed: " + event.Redact(err.Error())
	return found
}
