// Package health says how an opened lab is: its status, the proof that it is healthy, its diagnosis, and the traces of a node. It may wait,
// but changes nothing.
package health

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8slab/lab/diagnose"
	"k8slab/lab/event"
	"k8slab/lab/session"
	"k8slab/lab/wait"
)

// ProofBudget bounds the time from the last join to a proven cluster. It is long for emulated virtual machines.
const ProofBudget = 6 * time.Minute

// Prove waits until every condition holds, and then until nothing is wrong. What a diagnosis finds meanwhile is shown, and is in the error
// if the time runs out, or if what it finds will not pass: then the wait ends. One that is settled has not just been changed: most likely it is
// healthy now, and there is nothing to wait for.
func Prove(ctx context.Context, s *session.Session, v *session.Admin, settled bool) error {
	step := s.Events.Start("", "proof", ProofBudget)
	return step.End(await(ctx, s, v, settled, step))
}

func await(ctx context.Context, s *session.Session, v *session.Admin, settled bool, step *event.Step) error {
	ctx, cancel := context.WithTimeoutCause(ctx, ProofBudget, fmt.Errorf("the proof's %s budget ran out", ProofBudget))
	defer cancel()
	if settled && Healthy(ctx, s) == nil {
		return nil
	}
	for _, c := range conditions(s, diagnose.Cluster{Kube: v.Kube, Etcd: v.Etcd}) {
		step.Progress("%s", c.Name)
		if err := wait.For(ctx, c.Name, ProofBudget, s.Pace(), session.ShowWaiting(step, explained(s, c.Check))); err != nil {
			return err
		}
	}
	// Each held at some moment. Healthy means that all hold at the same time, and that no finding fails.
	return wait.For(ctx, "a healthy cluster", ProofBudget, s.Pace(), session.ShowWaiting(step, explained(s, func(ctx context.Context) error {
		return Healthy(ctx, s)
	})))
}

// patience is how long a condition may take before a diagnosis looks for the reason, and how long a reason stays.
const patience = 20 * time.Second

// lastingLooks is how many diagnoses in a row must find the same lasting problem until nobody waits for it to pass.
const lastingLooks = 3

// explained is the check, and after some time without success what a diagnosis finds.
func explained(s *session.Session, check func(context.Context) error) func(context.Context) error {
	next := time.Now().Add(patience * time.Duration(s.TimeScale()))
	reason := ""
	var lasting map[string]int // by how many looks in a row
	return func(ctx context.Context) error {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if time.Now().After(next) {
			r, lookErr := Diagnose(ctx, s, DiagnoseOptions{})
			if lookErr == nil && r.Failed() {
				reason = "\nthe diagnosis finds " + strings.Join(r.Problems(), "; ")
			}
			again := map[string]int{}
			for _, problem := range r.Lasting() {
				if again[problem] = lasting[problem] + 1; again[problem] == lastingLooks {
					return wait.Hopeless(errorWith(err, reason+"\nit does not pass by itself; next: labctl repair"))
				}
			}
			lasting, next = again, time.Now().Add(patience*time.Duration(s.TimeScale()))
		}
		return errorWith(err, reason)
	}
}

// errorWith is the error and what is known of its reason.
func errorWith(err error, reason string) error {
	if reason == "" {
		return err
	}
	return fmt.Errorf("%w%s", err, reason)
}

// apiBudget bounds the wait for an API server that was ready when it was saved.
const apiBudget = 2 * time.Minute

// leaseBudget bounds the wait for kubelets, which renew their Leases every 10 s and back off after a failure.
const leaseBudget = 2 * time.Minute

// SinceBudget bounds ProveSince.
const SinceBudget = apiBudget + leaseBudget + ProofBudget

// ProveSince proves a restored lab healthy. First it waits until every kubelet has renewed its Lease since that time: until then, the API
// server shows the nodes as they were when they were saved.
func ProveSince(ctx context.Context, s *session.Session, since time.Time) error {
	var v *session.Admin
	defer func() {
		if v != nil {
			v.Close()
		}
	}()
	step := s.Events.Start("", "API server", apiBudget)
	err := wait.For(ctx, "the API server at "+s.Endpoint(), apiBudget, s.Pace(), session.ShowWaiting(step, func(ctx context.Context) (err error) {
		if v == nil {
			if v, err = s.AnyAdmin(ctx); err != nil {
				return err
			}
		}
		return v.Kube.Ready(ctx)
	}))
	if err := step.End(err); err != nil {
		return err
	}
	step = s.Events.Start("", "leases", leaseBudget)
	err = wait.For(ctx, "every kubelet to renew its Lease", leaseBudget, s.Pace(), session.ShowWaiting(step, func(ctx context.Context) error {
		renewed, err := v.Kube.LeaseRenewals(ctx)
		if err != nil {
			return err
		}
		for _, n := range s.Cluster.Members() {
			if !renewed[n.Name].After(since) {
				err = errors.Join(err, fmt.Errorf("%s renewed it at %s", n.Name, renewed[n.Name].Format(time.RFC3339)))
			}
		}
		return err
	}))
	if err := step.End(err); err != nil {
		return err
	}
	return Prove(ctx, s, v, false)
}
