package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"k8slab/lab/event"
	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

// quick is the limit of a check that reads a few files or runs one program: generous for an emulated machine under load.
const quick = 3 * time.Second

// grace is what a check may take beyond its limit to notice it.
const grace = 200 * time.Millisecond

// preflight is one run of the checks. What several checks need is found once, by whoever asks first, and waited for by the others.
type preflight struct {
	m   Machine
	t   Target
	run context.Context // of the whole run, for what outlives the question that made it

	patience      time.Duration // see Machine.Patience
	units         func(context.Context) (units, error)
	cri           func(context.Context) (criFacts, error)
	api           func(context.Context) (apiFacts, error)
	info          func(context.Context) (kube.ClusterInfo, error)
	cluster       func(context.Context) (*trusted, error)
	clusterConfig func(context.Context) (kube.ClusterConfiguration, error)
	kubeletConfig func(context.Context) (kube.KubeletConfiguration, error)
	versions      func(context.Context) (versions, error)
}

func newPreflight(ctx context.Context, m Machine, t Target) *preflight {
	if t.Name == "" {
		t.Name = strings.ToLower(m.Hostname()) // as kubelet names its Node
	}
	p := &preflight{m: m, t: t, run: ctx}
	p.patience = m.Patience()
	p.units = lazily(ctx, p.patience*quick, p.findUnits)
	p.cri = lazily(ctx, p.patience*criLimit, p.findCRI)
	p.api = lazily(ctx, p.patience*apiLimit, p.findAPI)
	p.info = lazily(ctx, p.patience*(apiLimit+quick), p.findInfo)
	p.cluster = lazily(ctx, p.patience*(apiLimit+quick), p.findCluster)
	p.clusterConfig = lazily(ctx, p.patience*(apiLimit+2*quick), p.findClusterConfig)
	p.kubeletConfig = lazily(ctx, p.patience*(apiLimit+2*quick), p.findKubeletConfig)
	p.versions = lazily(ctx, p.patience*quick, p.findVersions)
	return p
}

// lazily makes a function that finds something at its first call, in the time of the whole run and not of the caller, whom its own context
// sets free.
func lazily[T any](run context.Context, limit time.Duration, find func(context.Context) (T, error)) func(context.Context) (T, error) {
	var once sync.Once
	var value T
	var err error
	done := make(chan struct{})
	look := func() {
		defer close(done)
		defer func() {
			if broken := recover(); broken != nil {
				err = fmt.Errorf("this program failed: %v", broken)
			}
		}()
		ctx, cancel := context.WithTimeout(run, limit)
		defer cancel()
		value, err = find(ctx)
	}
	return func(ctx context.Context) (T, error) {
		once.Do(func() { go look() })
		select {
		case <-done:
			return value, err
		case <-ctx.Done():
			var nothing T
			return nothing, context.Cause(ctx)
		}
	}
}

// Preflight makes every check that the target asks for, all at once. It changes nothing. report, if not nil, is told of each as it ends,
// one at a time. The result is sorted from worst to best and within that from cause to effect, so that the first is the nearest cause.
func Preflight(ctx context.Context, m Machine, t Target, report func(Check)) []Check {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return newPreflight(ctx, m, t).all(ctx, before(t), report)
}

func (p *preflight) all(ctx context.Context, probes []probe, report func(Check)) []Check {
	checks := make([]Check, len(probes))
	var mu sync.Mutex
	var g errgroup.Group
	if p.m.Emulated() { // it answers none of many at once in time
		g.SetLimit(4)
	}
	for i, pr := range probes {
		g.Go(func() error {
			check := p.one(ctx, pr)
			mu.Lock()
			defer mu.Unlock()
			checks[i] = check
			if report != nil {
				report(check)
			}
			return nil
		})
	}
	_ = g.Wait()
	rank(checks)
	return checks
}

// one makes a check and outlives it: a check that panics or hangs becomes a warning, because it has proven nothing.
func (p *preflight) one(ctx context.Context, pr probe) Check {
	start := p.m.Now()
	limit := p.patience * cmp.Or(pr.limit, quick)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not end within %s", limit))
	defer cancel()
	done := make(chan Check, 1)
	go func() {
		defer func() {
			if broken := recover(); broken != nil {
				done <- warn("", "report this", "not checked: this program failed: %v", broken)
			}
		}()
		done <- pr.run(ctx, p)
	}()
	var check Check
	select {
	case check = <-done:
	case <-after(ctx, grace):
		check = warn("", "look at what keeps the machine busy", "not checked: %v", context.Cause(ctx))
	}
	check.ID, check.Elapsed = pr.id, p.m.Now().Sub(start)
	check.Evidence, check.Hint = event.Redact(check.Evidence), event.Redact(check.Hint)
	if (check.Result == Blocked || check.Result == Fixable) && slices.ContainsFunc(pr.ignore, p.ignores) {
		check.Result = Warn
		check.Evidence += " (ignored as the configuration asks)"
	}
	return check
}

// after is closed some time after ctx has ended.
func after(ctx context.Context, d time.Duration) <-chan struct{} {
	late := make(chan struct{})
	context.AfterFunc(ctx, func() { time.AfterFunc(d, func() { close(late) }) })
	return late
}

// ignores says whether the configuration tells kubeadm to ignore its check of this name.
func (p *preflight) ignores(name string) bool {
	return slices.ContainsFunc(p.t.Ignore, func(ignored string) bool {
		return strings.EqualFold(ignored, name) || strings.EqualFold(ignored, "all")
	})
}

var severity = map[Result]int{Blocked: 0, Fixable: 1, Warn: 2, OK: 3}

// rank sorts from worst to best. Checks are listed from cause to effect, and stay so among equals.
func rank(checks []Check) {
	slices.SortStableFunc(checks, func(a, b Check) int { return severity[a.Result] - severity[b.Result] })
}

// Verdict is the worst result of the checks.
func Verdict(checks []Check) Result {
	worst := OK
	for _, c := range checks {
		if severity[c.Result] < severity[worst] {
			worst = c.Result
		}
	}
	return worst
}

func ok(format string, args ...any) Check {
	return Check{Result: OK, Evidence: fmt.Sprintf(format, args...)}
}

func warn(cause symptom.ID, hint, format string, args ...any) Check {
	return Check{Result: Warn, Symptom: cause, Hint: hint, Evidence: fmt.Sprintf(format, args...)}
}

func fixable(cause symptom.ID, hint, format string, args ...any) Check {
	return Check{Result: Fixable, Symptom: cause, Hint: hint, Evidence: fmt.Sprintf(format, args...)}
}

func blocked(cause symptom.ID, hint, format string, args ...any) Check {
	return Check{Result: Blocked, Symptom: cause, Hint: hint, Evidence: fmt.Sprintf(format, args...)}
}

// because says which of the check's failures it is.
func (c Check) because(reason Reason) Check {
	c.Reason = reason
	return c
}

// unmade is a check that could not be made because of another one's failure, which that one names.
func unmade(err error) Check {
	hint := "see the check that failed"
	if errors.Is(err, errNotAsked) {
		return ok("not asked for: %v", err)
	}
	return warn("", hint, "not checked: %v", err)
}

// errNotAsked is a check for which the target has no data.
var errNotAsked = errors.New("no cluster or credential is given")
