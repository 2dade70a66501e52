package join

import (
	"context"
	"errors"
	"time"

	"k8slab/lab/symptom"
)

// Offsets of the clock against the API server's, whose Date header has whole seconds only. kube-controller-manager dates kubelet's
// certificate five minutes back (pkg/controller/certificates/signer). A clock that is further behind finds the certificate not yet valid;
// one that is as far ahead lets tokens and leases end early. etcd complains about one second and works.
const (
	clockNoted   = 30 * time.Second
	clockHarmful = 5 * time.Minute
)

func checkClock(ctx context.Context, p *preflight) Check {
	facts, err := p.api(ctx)
	if err != nil {
		return unmade(errEndpoint)
	}
	if facts.live.Date.IsZero() {
		return unmade(errors.New("the API server did not say what time it is"))
	}
	return judgeClock(facts.at.Sub(facts.live.Date))
}

// judgeClock judges how far this clock is ahead.
func judgeClock(ahead time.Duration) Check {
	const hint = "synchronise the clock: timedatectl set-ntp true; chronyc makestep; date"
	offset, direction := ahead.Truncate(time.Second), "ahead of"
	if offset < 0 {
		offset, direction = -offset, "behind"
	}
	switch {
	case offset >= clockHarmful:
		return blocked(symptom.ClockSkew, hint, "this clock is %s %s the API server's: certificates will not be valid", offset, direction)
	case offset >= clockNoted:
		return warn(symptom.ClockSkew, hint, "this clock is %s %s the API server's", offset, direction)
	}
	return ok("within %s of the API server's", clockNoted)
}
