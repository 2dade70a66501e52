package health

import (
	"context"
	"errors"
	"fmt"
	"k8slab/lab/session"
	"k8slab/lab/wait"
	"time"
)

// apiBudget bounds the wait for an API server that was ready when it was saved.
const apiBudget = 2 * time.Minute

// leaseBudget bounds the wait for kubelets, which renew their Leases every 10 s and back off after a failure.
const leaseBudget = 2 * time.Minute

// SinceBudget bounds ProveSince.
const SinceBudget = apiBudget + leaseBudget + ProofBudget

// ProveSince waits for the API server to answer, for every kubelet to have renewed its Lease since the moment, and for the cluster to be
// healthy: until then what the API server says of nodes is of the past.
func ProveSince(ctx context.Context, s *session.Session, since time.Time) error {
	var v *session.Admin
	defer func() {
		if v != nil {
			v.Close()
		}
	}()
	step := s.Events.Start("", "API server", apiBudget)
	err := wait.For(ctx, "the API server at "+s.Endpoint(), apiBudget, s.Pace(), session.Telling(step, func(ctx context.Context) (err error) {
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
	err = wait.For(ctx, "every kubelet to renew its Lease", leaseBudget, s.Pace(), session.Telling(step, func(ctx context.Context) error {
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
	return Prove(ctx, s, v)
}
