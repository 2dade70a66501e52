// Package session is an opened lab: its machines, its nodes, and its cluster as the administrator sees it. It looks and hands on; what to do
// about what it finds is for the packages above.
package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"sync"
	"time"

	"k8slab/config"
	"k8slab/lab/event"
	"k8slab/lab/host"
	"k8slab/lab/machine"
	"k8slab/lab/node"
	"k8slab/lab/state"
)

// Machines are the lab's computers, wherever they come from.
type Machines interface {
	State(ctx context.Context, node string) (machine.State, error)
	List(ctx context.Context) ([]machine.Machine, error)
	Ensure(ctx context.Context, spec machine.Spec) error
	PowerOff(ctx context.Context, node string) error
	Suspend(ctx context.Context, node string) error
	Resume(ctx context.Context, node string) error
	Delete(ctx context.Context, node string) error
}

// Reader runs a command that changes nothing.
type Reader interface {
	Read(ctx context.Context, argv ...string) (string, error)
}

// Runner runs commands.
type Runner interface {
	Run(ctx context.Context, cmd node.Command) error
}

// Shell runs commands and writes files.
type Shell interface {
	Reader
	Runner
	Copy(ctx context.Context, file string, mode fs.FileMode, content io.Reader) error
}

// Node is a machine that answers, as root.
type Node interface {
	Shell
	Name() string
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	Close() error
}

// Session is an opened lab. Nothing in it changes after it was made: whoever changes what the lab is made of opens it again. Several may use
// it at once.
type Session struct {
	state.Lab // as it was when it was opened
	ID        string
	Events    *event.Stream
	Machines  Machines
	Nodes     map[string]Node // every member's, by name
	Host      *host.Host      // that has the machines
	Libvirt   *machine.Lab    // what of the machines only libvirt has; nil where they are not libvirt's
	Options
}

// Options are what a session is given.
type Options struct {
	Labnode func() (string, error) // the path of the labnode binary, which an image is made of
	Mutated func(what string)      // told of every change before it is made; several may tell at once
}

// LabnodeBinary is the path of the labnode binary.
func (o Options) LabnodeBinary() (string, error) {
	if o.Labnode == nil {
		return "", errors.New("no labnode is given to build an image with")
	}
	return o.Labnode()
}

// Close closes every connection.
func (s *Session) Close() {
	for _, n := range s.Nodes {
		_ = n.Close()
	}
	if s.Libvirt != nil {
		s.Libvirt.Close()
	}
}

// Emulated tells whether the machines' processors are computed, about ten times slower than real ones.
func (s *Session) Emulated() bool { return Emulated(s.URI) }

// TimeScale is how many times longer than on this computer's own processors everything may take in the lab.
func (s *Session) TimeScale() int { return TimeScale(s.URI) }

// Emulated tells whether machines of the URI have computed processors.
func Emulated(uri string) bool {
	return host.Emulated() || uri == host.VirtualMachines && !host.KVM()
}

// TimeScale is how many times longer everything may take in machines of the URI. Of an emulated 1 + 1, a machine's own part of a diagnosis
// took 5.5 s when nothing else was asked of it; a container's takes less than 1.
func TimeScale(uri string) int {
	if Emulated(uri) {
		return 5
	}
	return 1
}

// Within bounds a look at the lab.
func (s *Session) Within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	limit *= time.Duration(s.TimeScale())
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
}

// Pace is how often a condition of the whole cluster is looked at: asking must not be what loads it.
func (s *Session) Pace() time.Duration {
	if s.Emulated() {
		return 2 * time.Second
	}
	return 200 * time.Millisecond
}

// DaemonBudget bounds a call that libvirt answers from memory.
const DaemonBudget = 10 * time.Second

// ErrDaemonSilent is the cause of a context whose DaemonBudget ran out.
var ErrDaemonSilent = fmt.Errorf("no answer for %s", DaemonBudget)

// MachineState is what the node's machine does.
func (s *Session) MachineState(ctx context.Context, name string) (machine.State, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, DaemonBudget, ErrDaemonSilent)
	defer cancel()
	return s.Machines.State(ctx, name)
}

// StabilizeBudget is how long a control plane may take until it is stable.
func (s *Session) StabilizeBudget() time.Duration {
	return time.Duration(s.Cluster.Tuning.CPStabilizeTimeoutSeconds) * time.Second
}

// Endpoint is the address of the cluster's API: the virtual IP.
func (s *Session) Endpoint() string { return s.Cluster.Network.VirtualIP.String() + ":6443" }

// Do runs a command that may change the machine.
func Do(ctx context.Context, n Runner, argv ...string) error {
	return n.Run(ctx, node.Command{Argv: argv})
}

// ForEachNode runs f for each node at once, waits for all and returns all errors.
func ForEachNode(nodes []config.Node, f func(config.Node) error) error {
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() { errs[i] = f(n) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ShowWaiting has the step say why the check has not succeeded yet.
func ShowWaiting(step *event.Step, check func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := check(ctx)
		if err != nil {
			step.Waiting(err)
		}
		return err
	}
}

// DialCluster connects to an address in the cluster through a control plane: its own if the address is a node's, else the first that
// can reach it (the virtual IP).
func (s *Session) DialCluster(ctx context.Context, network, address string) (net.Conn, error) {
	ip, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	for _, n := range s.Cluster.Members() {
		if n.IP.String() == ip {
			return s.Nodes[n.Name].Dial(ctx, network, address)
		}
	}
	var errs []error
	for _, n := range s.Cluster.ControlPlanes() {
		conn, err := s.Nodes[n.Name].Dial(ctx, network, address)
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}
