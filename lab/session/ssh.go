package session

import (
	"context"
	"fmt"
	"time"

	"k8slab/config"
	"k8slab/lab/event"
	"k8slab/lab/machine"
	"k8slab/lab/node"
	"k8slab/lab/state"
)

// OpenSSH makes the clients for machines that exist already, which labctl logs in to as cluster.yaml says. Nothing connects yet. The options'
// Logins outlive the session.
func OpenSSH(l state.Lab, events *event.Stream, o Options) (*Session, error) {
	s := &Session{Lab: l, Events: events, Nodes: map[string]Node{}, Options: o}
	members := l.Cluster.Members()
	s.Machines = existing(members)
	tools := newPrograms(o.Packed)
	for _, n := range members {
		on, err := Login(l, n, o)
		if err != nil {
			s.Close()
			return nil, err
		}
		s.Nodes[n.Name] = &carried{Node: on, programs: tools, keep: l.Cluster.Login(n).KeepLabnode}
	}
	return s, nil
}

// greetTime is how long the first logins may take while nobody is asked anything.
const greetTime = 3 * time.Second

// Greet logs in to every machine, so that what a person is asked is asked before any time limit runs. It says nothing of machines that do not
// answer: whoever needs them does. Where there is nobody to ask, it does nothing.
func (s *Session) Greet(ctx context.Context) {
	if !s.Logins.Asks() {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = ForEachNode(s.Cluster.Members(), func(n config.Node) error {
			on, _ := s.Nodes[n.Name].(*carried)
			if login, is := on.Node.(*node.Node); is {
				return login.Login(ctx)
			}
			return nil
		})
	}()
	tick := time.NewTicker(greetTime)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
			if !s.Logins.Asking() {
				return
			}
		}
	}
}

// Login is a new SSH client for a machine that exists. It connects when first used.
func Login(l state.Lab, n config.Node, o Options) (*node.Node, error) {
	return o.Logins.Node(n.Name, l.Cluster.Login(n), o.Mutated)
}

// existing are machines that are there without labctl's doing. Whether one runs, only its SSH server tells.
type existing []config.Node

func (e existing) State(context.Context, string) (machine.State, error) { return machine.Running, nil }

func (e existing) List(context.Context) ([]machine.Machine, error) {
	var all []machine.Machine
	for _, n := range e {
		all = append(all, machine.Machine{Node: n.Name, State: machine.Running, Maker: machine.Labctl})
	}
	return all, nil
}

func (e existing) Ensure(context.Context, machine.Spec) error { return nil }

func (e existing) Resize(_ context.Context, spec machine.Spec) (bool, error) {
	return false, notMade(spec.Node, "give it another size")
}

func (e existing) PowerOff(_ context.Context, name string) error { return notMade(name, "turn it off") }
func (e existing) Suspend(_ context.Context, name string) error  { return notMade(name, "pause it") }
func (e existing) Resume(_ context.Context, name string) error   { return notMade(name, "resume it") }
func (e existing) Delete(_ context.Context, name string) error   { return notMade(name, "delete it") }

func notMade(name, do string) error {
	return fmt.Errorf("%s: labctl did not make this machine, so it does not %s; next: do it where the machine is managed", name, do)
}
