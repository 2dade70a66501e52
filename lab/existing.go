package lab

import (
	"context"

	"k8slab/lab/guard"
	"k8slab/lab/node"
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
	forwarded, err := keepAdmin(ctx, l, session.Forward)
	return forwarded.Kubeconfig, forwarded.Stop, err
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
	return l.guard.Do(ctx, s, guard.Verb{Name: a.verb, Node: a.node, Steps: a.steps, Agreed: a.agreed, Ends: a.ends}, func() error { return do(s) })
}

// repairExisting first finds out what would be repaired, which needs no consent.
func (l *Lab) repairExisting(ctx context.Context, upTo repair.Rung) ([]repair.Repaired, error) {
	var seen repair.Seen
	found, err := l.repair(ctx, true, upTo, &seen)
	var steps []string
	for _, f := range found {
		if f.Would != "" {
			steps = append(steps, f.String())
		}
	}
	if err != nil || len(steps) == 0 { // what is left needs a person
		return found, err
	}
	return l.repair(ctx, false, upTo, &seen, steps...)
}

// BeforeFaults asks, looks for other administrators and saves what is there, in a cluster that labctl did not make. In a lab it does nothing.
func (l *Lab) BeforeFaults(ctx context.Context, verb string, steps []string) error {
	if !l.described.OverSSH() {
		return nil
	}
	return l.with(ctx, access{verb: verb, steps: steps}, func(*session.Session) error { return nil })
}

// Do runs a user's own command on the node. On machines that labctl did not make it brings labnode where the command names it, which stays
// until the lab is closed.
func (l *Lab) Do(ctx context.Context, name string, cmd node.Command) error {
	if l.described.OverSSH() {
		s, err := l.byOwnHand()
		if err != nil {
			return err
		}
		if _, err := s.Member(name); err != nil {
			return err
		}
		return s.Nodes[name].Run(ctx, cmd)
	}
	n, err := l.Node(name)
	if err != nil {
		return err
	}
	defer func() { _ = n.Close() }()
	return n.Run(ctx, cmd)
}

// byOwnHand is a session for a person's own commands, which nothing refuses.
func (l *Lab) byOwnHand() (*session.Session, error) {
	l.keeping.Lock()
	defer l.keeping.Unlock()
	if l.hands != nil {
		return l.hands, nil
	}
	closed, err := state.Read(l.described)
	if err != nil {
		return nil, err
	}
	own := l.options
	own.Mutated = nil
	l.hands, err = session.OpenSSH(closed, l.events, own)
	return l.hands, err
}
