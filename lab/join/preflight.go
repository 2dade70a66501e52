package join

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"k8slab/lab/event"
	"k8slab/lab/symptom"
)

func newPreflight(ctx context.Context, m Machine, t Target) *preflight {
	if t.Name == "" {
		t.Name = m.kubeletName()
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

// one makes a check. If the check panics or hangs, the result is a warning, because it proves nothing.
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

// Examine makes the checks that mean something on any machine, member or not: of the host, the runtime, kubelet's unit and the way to the
// target's endpoint. On a machine that has joined it adds those that RepairMember can repair. It changes nothing. The result is sorted as
// Preflight's.
func Examine(ctx context.Context, m Machine, t Target) []Check {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	joined := m.Exists(kubeletConf)
	list := probes(func(pr probe) bool {
		return pr.scope == anywhere && (pr.when == nil || pr.when(t)) || joined && pr.id == CheckKubeletConfig // Validate tells of the service
	})
	checks := newPreflight(ctx, m, t).all(ctx, list, nil)
	if joined {
		onMember(checks)
		rank(checks)
	}
	return checks
}

// onMember makes a missing pod network a failure. Before a join it is none.
func onMember(checks []Check) {
	for i, c := range checks {
		if c.ID == CheckCNIConfig && c.Result == Warn && c.Symptom == symptom.CNINotInitialized {
			checks[i].Result, checks[i].Hint = Blocked, "restart the network add-on's pod of this node, which writes it"
		}
	}
}
