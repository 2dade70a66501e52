package lab

import (
	"context"

	"k8slab/lab/guard"
	"k8slab/lab/health"
	"k8slab/lab/repair"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// Kubeconfig is the path of a kubeconfig of the administrator that works on this computer until close is called.
func (l *Lab) Kubeconfig(ctx context.Context) (path string, closing func(), err error) {
	if !l.described.OverSSH() {
		path, err = l.found.Kubeconfig()
		return path, func() {}, err
	}
	s, err := l.keep(ctx)
	if err != nil {
		return "", nil, err
	}
	v, err := s.AnyAdmin(ctx)
	if err != nil {
		return "", nil, err
	}
	defer v.Close()
	return s.Forward(ctx, v)
}

// AdminConf is the administrator's kubeconfig, as control planes have it.
func (l *Lab) AdminConf(ctx context.Context) ([]byte, error) {
	return askAdmin(ctx, l, access{}, func(_ context.Context, _ *session.Session, v *session.Admin) ([]byte, error) { return v.Config, nil })
}

// openSSH opens a cluster of machines that exist.
func (l *Lab) openSSH(ctx context.Context, closed state.Lab, _ bool) (*session.Session, error) {
	s, err := session.OpenSSH(closed, l.events, l.options)
	if err == nil {
		s.Greet(ctx)
	}
	return s, err
}

// onExisting runs a verb on a cluster that labctl did not make. One that only reads cannot change anything: see mutated.
func (l *Lab) onExisting(ctx context.Context, s *session.Session, a access, do func(*session.Session) error) error {
	if a.verb == "" {
		return do(s)
	}
	return l.guard.Do(ctx, s, guard.Verb{Name: a.verb, Steps: a.steps, Agreed: a.agreed}, func() error { return do(s) })
}

// repairExisting first finds out what would be repaired, which needs no consent.
func (l *Lab) repairExisting(ctx context.Context, upTo repair.Rung) ([]repair.Repaired, error) {
	found, err := l.repair(ctx, true, upTo)
	if err != nil {
		return found, err
	}
	var steps []string
	for _, f := range found {
		if f.Would != "" {
			steps = append(steps, f.String())
		}
	}
	if len(steps) == 0 { // what is left needs a person
		return found, nil
	}
	return l.repair(ctx, false, upTo, steps...)
}

// verify proves the cluster healthy, and changes nothing.
func (l *Lab) verify(ctx context.Context) error {
	return l.with(ctx, access{}, func(s *session.Session) error { return health.Verify(ctx, s) })
}
