package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/attach"
	"k8slab/lab/backup"
	"k8slab/lab/health"
	"k8slab/lab/kube"
	"k8slab/lab/node"
	"k8slab/lab/repair"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// Change is what a verb is about to do to a cluster that labctl did not make.
type Change struct {
	Verb    string   // such as "labctl rejoin w1"
	Cluster string   // its name
	Steps   []string // what will be done, with the commands that would do it by hand
	Named   bool     // it cannot be undone, so a person says the cluster's name to agree
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
		_ = a.logins.Close()
	}
	return a, err
}

// Close closes its connections.
func (a Attached) Close() { _ = a.logins.Close() }

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
	return l.change(ctx, s, a, func() error { return do(s) })
}

// byHand are the steps of verbs, with the commands that would do them by hand. NODE stands for the verb's argument.
var byHand = map[string][]string{
	"labctl join": {"remove on NODE what an earlier join left, if it did not end (kubeadm reset)",
		"remove NODE's dead member from etcd, and its Node, if they are of a join before (etcdctl member remove; kubectl delete node NODE)",
		"make a token and join NODE (kubeadm token create --print-join-command; kubeadm join)"},
	"labctl rejoin": {"remove NODE's member from etcd, if it is a control plane and the others keep the quorum (etcdctl member remove)",
		"remove what kubeadm did on NODE, and its Node (kubeadm reset; kubectl delete node NODE)", "join NODE (kubeadm join)"},
	"labctl reset": {"remove NODE's member from etcd, if it is a control plane and the others keep the quorum (etcdctl member remove)",
		"remove what kubeadm did on NODE, and its Node (kubeadm reset; kubectl delete node NODE)"},
	"labctl join-command":        {"make a bootstrap token for 30 minutes (kubeadm token create)"},
	"labctl etcd clean-learners": {"remove the learners that no join will promote (etcdctl member remove)"},
}

// change says what will be done, asks, keeps other administrators out, saves what is there, and then does it.
func (l *Lab) change(ctx context.Context, s *session.Session, a access, do func() error) (err error) {
	verb, node := a.verb, ""
	if i := strings.LastIndex(verb, " "); byHand[verb] == nil && i > 0 {
		verb, node = verb[:i], verb[i+1:]
	}
	steps := a.steps
	for _, step := range byHand[verb] {
		steps = append(steps, strings.ReplaceAll(step, "NODE", node))
	}
	if !a.agreed {
		if l.confirm == nil {
			return refused(a.verb)
		}
		if err := l.confirm(ctx, Change{Verb: a.verb, Cluster: l.Name(), Steps: steps, Named: a.ends}); err != nil {
			return err
		}
	}
	if err := remember(s.Lab); err != nil {
		return err
	}
	l.allowChanges(ctx)
	defer l.allowChanges(nil)
	v, err := s.AnyAdmin(ctx)
	if err != nil {
		v = nil
	} else {
		defer v.Close()
	}
	release, err := l.hold(ctx, s, v, a.verb)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	var changed []config.Node
	if n, known := s.Cluster.Node(node); known {
		changed = append(changed, n)
	}
	if a.ends {
		changed = s.Cluster.Members()
	}
	if !a.agreed {
		if _, err := backup.Take(ctx, s, v, a.verb, changed); err != nil {
			return err
		}
	}
	return do()
}

// hold takes the Lease that keeps other administrators out. Where no API server answers there is none, and repairs are needed most.
func (l *Lab) hold(ctx context.Context, s *session.Session, v *session.Admin, verb string) (release func() error, err error) {
	none := func() error { return nil }
	if v == nil {
		s.Events.Start("", "lease", 0).EndWith("no API server answers, so nothing keeps another administrator out")
		return none, nil
	}
	held, end, err := v.Kube.HoldLease(ctx, state.Operator()+" ("+verb+")")
	switch {
	case kube.Unanswered(err):
		s.Events.Start("", "lease", 0).EndWith("no API server answers, so nothing keeps another administrator out")
		return none, nil
	case err != nil:
		return nil, err
	}
	l.allowChanges(held)
	return func() error {
		ctx, cancel := s.Within(context.WithoutCancel(ctx), releaseTime)
		defer cancel()
		l.allowChanges(ctx)
		if err := end(ctx); err != nil && !kube.Unanswered(err) {
			return err
		}
		return nil
	}, nil
}

// releaseTime is how long the end of a Lease may take. One that stays runs out by itself.
const releaseTime = 5 * time.Second

// allowChanges lets changes pass until the context ends; nil lets none.
func (l *Lab) allowChanges(until context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changing = until
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
	_, err := ask(ctx, l, access{}, func(ctx context.Context, s *session.Session) (struct{}, error) {
		step := s.Events.Start("", "proof", 0)
		err := health.Healthy(ctx, s)
		if err != nil {
			err = fmt.Errorf("%w\nlabctl up verifies a cluster that exists; next: labctl diagnose, labctl repair, or labctl join NODE", err)
		}
		return struct{}{}, step.End(err)
	})
	return err
}

// detach forgets the cluster, which stays as it is.
func (l *Lab) detach() error {
	step := l.events.Start("", "down", 0)
	if !l.found.Exists() {
		step.EndWith("nothing to forget: " + l.Name() + " is not attached")
		return nil
	}
	if err := os.RemoveAll(l.found.Path()); err != nil {
		return step.End(err)
	}
	step.EndWith("forgot " + l.Name() + "; the cluster stays as it is")
	return nil
}
