// Package lab is the lab's verbs: it plans, brings up, checks and takes down the cluster that cluster.yaml describes. Every verb first
// reads the real state, so running it again resumes an interrupted run. A verb opens the lab, calls the package that does the work, and
// closes it.
package lab

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"k8slab/config"
	"k8slab/lab/addon"
	"k8slab/lab/cluster"
	"k8slab/lab/event"
	"k8slab/lab/guard"
	"k8slab/lab/host"
	"k8slab/lab/node"
	"k8slab/lab/provision"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// Options of a lab.
type Options struct {
	Events  *event.Stream
	Labnode func(arch string) (string, error)         // returns the path of the labnode binary, needed to build an image
	Packed  func(arch string) ([]byte, error)         // returns labnode in gzip's format, needed on machines that exist
	Login   node.LoginOptions                         // what is asked of a person before the first login to a machine that exists
	Confirm func(context.Context, guard.Change) error // shows a change of a cluster that labctl did not make, and asks; nil refuses every change
}

// Lab is one lab: its description, and the way to open it.
type Lab struct {
	described *config.Cluster
	found     state.Lab // as New read it
	events    *event.Stream
	options   session.Options
	guard     guard.Guard // of a cluster that labctl did not make
	open      opener

	mu      sync.Mutex
	changes []string

	keeping sync.Mutex       // apart from mu, because opening may report changes
	kept    *session.Session // for connections that outlive a call
	hands   *session.Session // for a person's own commands on machines that exist
}

// opener opens a lab; with makes, it first installs and starts what the machines need of this computer.
type opener func(ctx context.Context, l state.Lab, makes bool) (*session.Session, error)

// New returns the lab that the cluster describes. It changes nothing.
func New(described *config.Cluster, opts Options) (*Lab, error) {
	found, err := state.Read(described)
	if err != nil {
		return nil, err
	}
	l := &Lab{described: described, found: found, events: opts.Events}
	l.guard.Confirm = opts.Confirm
	if l.events == nil {
		l.events = event.NewStream()
	}
	l.options = session.Options{Labnode: opts.Labnode, Packed: opts.Packed, Mutated: l.mutated}
	l.open = l.openLibvirt
	if described.OverSSH() {
		l.options.Logins = node.NewLogins(opts.Login)
		l.open = l.openSSH
	}
	return l, nil
}

func (l *Lab) openLibvirt(ctx context.Context, closed state.Lab, makes bool) (*session.Session, error) {
	if makes {
		return provision.Open(ctx, closed, l.events, l.options)
	}
	h, err := hostOf(closed)
	if err != nil {
		return nil, err
	}
	return session.Open(closed, h, l.events, l.options)
}

func hostOf(closed state.Lab) (*host.Host, error) {
	if !closed.Exists() {
		return nil, state.ErrNotUp
	}
	h, err := session.Connect(closed)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, state.ErrNotUp
	}
	return h, err
}

// access is what a verb needs of the lab.
type access struct {
	verb    string                // takes the lab's lock in its name; "" for a verb that only reads
	node    string                // that the verb changes, if it is one
	makes   bool                  // install what this computer lacks and start libvirt; without, the lab must exist
	check   func(state.Lab) error // refuses the verb before anything is opened
	within  time.Duration         // time limit on real processors, 0 for none
	steps   []string              // what the verb does by hand, where byHand does not say it
	agreed  bool                  // a person has agreed to the change, and the verb itself saves what is there
	ends    bool                  // it ends the cluster
	prepare func(state.Lab) error // changes the lab's directory, which is read again before the lab is opened
}

// with opens the lab for a verb, and closes it. It reads the lab's directory under the lock.
func (l *Lab) with(ctx context.Context, a access, do func(*session.Session) error) error {
	if !a.makes && !l.found.Exists() && !l.described.OverSSH() {
		return state.ErrNotUp
	}
	if a.verb != "" {
		release, err := state.Lock(l.Name(), strings.TrimSpace(a.verb+" "+a.node))
		if err != nil {
			return err
		}
		defer release()
	}
	closed, err := state.Read(l.described)
	if err == nil && a.check != nil {
		err = a.check(closed)
	}
	if err == nil && a.prepare != nil {
		if err = a.prepare(closed); err == nil {
			closed, err = state.Read(l.described)
		}
	}
	if err != nil {
		return err
	}
	s, err := l.open(ctx, closed, a.makes)
	if err != nil {
		return err
	}
	defer s.Close()
	if closed.Cluster.OverSSH() {
		return l.onExisting(ctx, s, a, do)
	}
	return do(s)
}

// ask is with, for a verb that returns an answer.
func ask[T any](ctx context.Context, l *Lab, a access, do func(context.Context, *session.Session) (T, error)) (answer T, err error) {
	err = l.with(ctx, a, func(s *session.Session) error {
		if a.within > 0 {
			bounded, cancel := s.Within(ctx, a.within)
			defer cancel()
			ctx = bounded
		}
		answer, err = do(ctx, s)
		return err
	})
	return answer, err
}

// askAdmin is ask, for a verb that needs the cluster. It opens it through the first control plane that answers.
func askAdmin[T any](ctx context.Context, l *Lab, a access, do func(context.Context, *session.Session, *session.Admin) (T, error)) (T, error) {
	return ask(ctx, l, a, func(ctx context.Context, s *session.Session) (answer T, err error) {
		v, err := s.AnyAdmin(ctx)
		if err != nil {
			return answer, err
		}
		defer v.Close()
		return do(ctx, s, v)
	})
}

func (l *Lab) onOpened(ctx context.Context, a access, open func(context.Context, *session.Session, cluster.ImageImport) (*cluster.Run, error),
	do func(*cluster.Run) error,
) error {
	return l.with(ctx, a, func(s *session.Session) error {
		c, err := open(ctx, s, addon.Importer(s))
		if err != nil {
			return err
		}
		defer c.Close()
		return errors.Join(do(c), c.Retire(ctx))
	})
}

// onNode changes one node of the cluster that is there.
func (l *Lab) onNode(ctx context.Context, verb, name string, do func(*cluster.Run, context.Context, config.Node) error) error {
	closed, err := state.Read(l.described) // not l.found: nodes may have been admitted since
	if err != nil {
		return err
	}
	if _, err := closed.Member(name); err != nil {
		return err
	}
	return l.onOpened(ctx, access{verb: verb, node: name}, cluster.Open, func(c *cluster.Run) error {
		n, err := c.Member(name)
		if err != nil {
			return err
		}
		return do(c, ctx, n)
	})
}

// keep returns a session that stays open until the lab is closed.
func (l *Lab) keep(ctx context.Context) (*session.Session, error) {
	l.keeping.Lock()
	defer l.keeping.Unlock()
	if l.kept != nil {
		return l.kept, nil
	}
	closed, err := state.Read(l.described)
	if err != nil {
		return nil, err
	}
	s, err := l.open(ctx, closed, false)
	l.kept = s
	return s, err
}

// keepAdmin is askAdmin, for an answer that works until the lab is closed.
func keepAdmin[T any](ctx context.Context, l *Lab, do func(context.Context, *session.Session, *session.Admin) (T, error)) (answer T, err error) {
	s, err := l.keep(ctx)
	if err != nil {
		return answer, err
	}
	v, err := s.AnyAdmin(ctx)
	if err != nil {
		return answer, err
	}
	defer v.Close()
	return do(ctx, s, v)
}

// Close closes the connections that were given away.
func (l *Lab) Close() {
	l.keeping.Lock()
	defer l.keeping.Unlock()
	for _, s := range []*session.Session{l.kept, l.hands} {
		if s != nil {
			s.Close()
		}
	}
	if l.options.Logins != nil {
		_ = l.options.Logins.Close()
	}
}

// mutated records each change just before one of our clients makes it. A cluster that labctl did not make is only changed by a verb that
// was allowed to.
func (l *Lab) mutated(what string) error {
	if l.described.OverSSH() {
		if err := l.guard.Mutated(what); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes = append(l.changes, what)
	return nil
}

// Changes lists what this process has changed so far: libvirt calls, commands on nodes, Kubernetes and etcd writes.
func (l *Lab) Changes() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.changes)
}

// Name is the lab's name.
func (l *Lab) Name() string { return l.described.Name }

// Events is the stream of what happens to the lab.
func (l *Lab) Events() *event.Stream { return l.events }

// Closed is the lab as New read its directory.
func (l *Lab) Closed() state.Lab { return l.found }

// TimeScale is the factor for all time limits of the lab: above 1 where processors are emulated.
func (l *Lab) TimeScale() int { return session.TimeScale(l.found.URI) }

// Host is the libvirt host of the lab; ErrNotUp when the lab does not exist.
func (l *Lab) Host() (*host.Host, error) { return hostOf(l.found) }

// Node returns a new connection to the node for a user's own commands, because the machine may have been replaced since the last one. The
// caller closes it. It is safe for concurrent use.
func (l *Lab) Node(name string) (*node.Node, error) {
	closed, err := state.Read(l.described)
	if err != nil {
		return nil, err
	}
	n, err := closed.Member(name)
	if err != nil {
		return nil, err
	}
	if closed.Cluster.OverSSH() {
		own := l.options
		own.Mutated = nil // what a person does there by hand is that person's
		return session.Login(closed, n, own)
	}
	h, err := l.Host()
	if err != nil {
		return nil, err
	}
	return session.Connection(closed, h, n, l.mutated)
}

// Dial connects to an address in the lab's network, such as a kubelet's. The connection works until the lab is closed.
func (l *Lab) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	s, err := l.keep(ctx)
	if err != nil {
		return nil, err
	}
	return s.DialCluster(ctx, network, address)
}

// LockFaults takes the lock for faults: see state.LockFaults.
func (l *Lab) LockFaults(purpose string) (release func(), err error) {
	return state.LockFaults(l.Name(), purpose)
}
