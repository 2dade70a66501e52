package lab

import (
	"context"
	"fmt"

	"k8slab/lab/attach"
	"k8slab/lab/node"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// Change is what a verb is about to do to a cluster that labctl did not make.
type Change struct {
	Verb  string   // such as "labctl rejoin w1"
	Steps []string // what will be done, with the commands that would do it by hand
	Nodes []string // that are changed
}

// Attached is a cluster that was found, and what it takes to keep it.
type Attached struct {
	Found  attach.Found
	logins *node.Logins
}

// Attach finds out what a cluster that exists consists of: see attach.Find. It changes nothing.
func Attach(ctx context.Context, o attach.Options, opts Options) (a Attached, err error) {
	a.logins = node.NewLogins(opts.Login)
	refuse := func(what string) error { return refused(what) }
	o.Events, o.Session = opts.Events, session.Options{Logins: a.logins, Mutated: refuse}
	a.Found, err = attach.Find(ctx, o)
	if err != nil {
		a.logins.Close()
	}
	return a, err
}

// Close closes its connections.
func (a Attached) Close() { a.logins.Close() }

// Keep remembers the cluster among this user's labs.
func (a Attached) Keep() error {
	closed, err := state.Read(a.Found.Cluster)
	if err != nil {
		return err
	}
	if closed.Exists() && !closed.Cluster.OverSSH() {
		return fmt.Errorf("there is a lab named %s already; next: labctl attach with another --name", a.Found.Name)
	}
	return remember(closed)
}

// remember writes the description down, for --lab and for diagnose --all.
func remember(closed state.Lab) error {
	if _, err := closed.ID(); err != nil {
		return err
	}
	return closed.Settle()
}

// refused is the error for a change by a command that only reads.
func refused(what string) error {
	return fmt.Errorf("refused: %q may change the cluster, and this command only reads", what)
}

// openSSH opens a cluster of machines that exist.
func (l *Lab) openSSH(_ context.Context, closed state.Lab, _ bool) (*session.Session, error) {
	return session.OpenSSH(closed, l.events, l.options)
}

// onExisting runs a verb on a cluster that labctl did not make. One that only reads cannot change anything: see mutated. A change is shown
// and agreed to before.
func (l *Lab) onExisting(ctx context.Context, s *session.Session, a access, do func(*session.Session) error) error {
	if a.verb == "" {
		return do(s)
	}
	return l.change(ctx, s, Change{Verb: a.verb}, func() error { return do(s) })
}

func (l *Lab) change(_ context.Context, _ *session.Session, what Change, do func() error) error {
	if err := l.confirm(what); err != nil {
		return err
	}
	l.allowChanges(true)
	defer l.allowChanges(false)
	return do()
}

func (l *Lab) allowChanges(allowed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changing = allowed
}
