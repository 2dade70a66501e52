// Package guard stands before every change of a cluster that labctl did not make. Verbs that only read cannot change it. The others show what
// they will do, ask, keep other administrators out, and save what is there.
package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8slab/config"
	"k8slab/lab/backup"
	"k8slab/lab/kube"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// Change is what a verb is about to do.
type Change struct {
	Verb    string   // such as "labctl rejoin w1"
	Cluster string   // its name
	Steps   []string // what will be done, with the commands that would do it by hand
	Named   bool     // it cannot be undone, so a person says the cluster's name to agree
}

// Guard refuses changes but while Do runs.
type Guard struct {
	Confirm func(context.Context, Change) error // shows a change, and asks; nil refuses every change

	mu    sync.Mutex
	until context.Context // while it lasts, changes may be made; nil: none may
}

// Verb is a verb that changes the cluster.
type Verb struct {
	Name   string   // such as "labctl rejoin"
	Node   string   // the node that it is about, "" for none
	Steps  []string // what it does by hand, where byHand does not say it
	Agreed bool     // a person has agreed already, and the verb itself saves what is there
	Ends   bool     // it ends the cluster
}

// Mutated refuses a change, unless a verb may make it now: see session.Options.
func (g *Guard) Mutated(what string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.until == nil {
		return session.ReadOnly(what)
	}
	if g.until.Err() != nil { // such as a Lease that was lost
		return fmt.Errorf("refused: %s: %w", what, context.Cause(g.until))
	}
	return nil
}

// String is the command.
func (v Verb) String() string { return strings.TrimSpace(v.Name + " " + v.Node) }

// byHand are the steps of verbs, with the commands that would do them by hand. NODE stands for the verb's node.
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

// Do shows what the verb will do, asks, keeps other administrators out, saves what is there, and then does it.
func (g *Guard) Do(ctx context.Context, s *session.Session, v Verb, do func() error) (err error) {
	if err := g.agree(ctx, s, v); err != nil {
		return err
	}
	if err := s.Remember(); err != nil {
		return err
	}
	g.allow(ctx)
	defer g.refuse()
	admin, err := s.AnyAdmin(ctx)
	if err != nil {
		admin = nil
	} else {
		defer admin.Close()
	}
	release, err := g.hold(ctx, s, admin, v.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if !v.Agreed {
		var changed []config.Node
		if n, known := s.Cluster.Node(v.Node); known {
			changed = append(changed, n)
		}
		if v.Ends {
			changed = s.Cluster.Members()
		}
		if _, err := backup.Take(ctx, s, admin, v.String(), changed); err != nil {
			return err
		}
	}
	if v.Ends { // so does the Lease
		g.allow(ctx)
	}
	return do()
}

// hold takes the Lease that keeps other administrators out. Where no API server answers there is none, and repairs are needed most.
func (g *Guard) hold(ctx context.Context, s *session.Session, v *session.Admin, verb string) (release func() error, err error) {
	none := func() error { return nil }
	if v == nil {
		s.Events.Start("", "lease", 0).EndWith("no API server answers, so nothing keeps another administrator out")
		return none, nil
	}
	owner, err := s.Lab.ID() // its lock is held
	if err != nil {
		return nil, err
	}
	held, end, err := v.Kube.HoldLease(ctx, state.Operator()+" ("+verb+")", owner)
	switch {
	case kube.Unanswered(err):
		s.Events.Start("", "lease", 0).EndWith("no API server answers, so nothing keeps another administrator out")
		return none, nil
	case err != nil:
		return nil, err
	}
	g.allow(held)
	return func() error {
		ctx, cancel := s.Within(context.WithoutCancel(ctx), releaseTime)
		defer cancel()
		g.allow(ctx)
		if err := end(ctx); err != nil && !kube.Unanswered(err) {
			return err
		}
		return nil
	}, nil
}

// releaseTime is how long the end of a Lease may take. One that stays runs out by itself.
const releaseTime = 5 * time.Second

// allow lets changes pass until the context ends.
func (g *Guard) allow(until context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.until = until
}

// refuse lets no more change pass.
func (g *Guard) refuse() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.until = nil
}

// agree shows the steps, and asks.
func (g *Guard) agree(ctx context.Context, s *session.Session, v Verb) error {
	if v.Agreed {
		return nil
	}
	if g.Confirm == nil {
		return session.ReadOnly(v.String())
	}
	c := Change{Verb: v.String(), Cluster: s.Cluster.Name, Steps: v.Steps, Named: v.Ends}
	for _, step := range byHand[v.Name] {
		c.Steps = append(c.Steps, strings.ReplaceAll(step, "NODE", v.Node))
	}
	return g.Confirm(ctx, c)
}
