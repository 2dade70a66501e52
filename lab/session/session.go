// Package session is an opened lab: its machines, its nodes, and its cluster as the administrator sees it. It looks and hands on; what to
// do about what it finds is for the packages above.
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
	Resize(ctx context.Context, spec machine.Spec) (restart bool, err error)
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

// Session is an opened lab. It is immutable, so several goroutines may use it: after a change of the lab's description, open another.
type Session struct {
	state.Lab // the description and the directory, as read when the session was opened
	ID        string
	Events    *event.Stream
	Machines  Machines
	Nodes     map[string]Node // every member's, by name
	Host      *host.Host      // the computer whose libvirt has the machines
	Libvirt   *machine.Lab    // snapshots, pools, networks and consoles; nil for machines that are not libvirt's
	Options
}

// Options of a session.
type Options struct {
	Labnode func(arch string) (path string, err error) // the labnode binary, which becomes part of the image
	Packed  func(arch string) ([]byte, error)          // the same in gzip's format, as it is sent to machines that exist
	Mutated func(what string) error                    // called before every change, also concurrently; an error refuses it
	Logins  *node.Logins                               // to machines that exist
}

// Told is Mutated for libvirt, whose machines only labs have: their changes are counted and not refused.
func (o Options) Told() func(what string) {
	if o.Mutated == nil {
		return nil
	}
	return func(what string) { _ = o.Mutated(what) }
}

// ReadOnly is Mutated for a command that only reads: it refuses every change.
func ReadOnly(what string) error {
	return fmt.Errorf("refused: %q may change the cluster, and this command only reads", what)
}

// LabnodeBinary is the path of the labnode binary for the image.
func (o Options) LabnodeBinary() (string, error) {
	if o.Labnode == nil {
		return "", errors.New("no labnode is given to build an image with")
	}
	return o.Labnode("amd64")
}

// Close closes every connection.
func (s *Session) Close() {
	var wg sync.WaitGroup
	for _, n := range s.Nodes {
		wg.Go(func() { _ = n.Close() })
	}
	wg.Wait()
	if s.Libvirt != nil {
		s.Libvirt.Close()
	}
}

// Emulated tells whether software emulates the machines' processors, which makes them about ten times slower.
func (s *Session) Emulated() bool { return Emulated(s.URI) }

// TimeScale is the factor for all time limits of the lab: above 1 where processors are emulated.
func (s *Session) TimeScale() int { return TimeScale(s.URI) }

// Emulated tells whether machines of the URI have emulated processors. Those that exist have not, whatever this computer is.
func Emulated(uri string) bool {
	return uri != string(config.MachinesSSH) && host.Emulated() || uri == host.VirtualMachines && !host.KVM()
}

// TimeScale is the factor for time limits in machines of the URI. Measured: labnode's part of a diagnosis takes 5.5 s on an idle emulated
// machine, and less than 1 s in a container.
func TimeScale(uri string) int {
	if Emulated(uri) {
		return 5
	}
	return 1
}

// Within is the context with a time limit, which is longer on emulated machines.
func (s *Session) Within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	limit *= time.Duration(s.TimeScale())
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
}

// Pace is the pause between two checks of a condition of the whole cluster: polling must not load an emulated one.
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

// MachineState asks what the node's machine does, with libvirt's time limit.
func (s *Session) MachineState(ctx context.Context, name string) (machine.State, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, DaemonBudget, ErrDaemonSilent)
	defer cancel()
	return s.Machines.State(ctx, name)
}

// StabilizeBudget bounds the wait for a stable control plane.
func (s *Session) StabilizeBudget() time.Duration {
	return time.Duration(s.Cluster.Tuning.CPStabilizeTimeoutSeconds) * time.Second
}

// Endpoint is the HOST:PORT of the cluster's API. In a lab it is the virtual IP.
func (s *Session) Endpoint() string { return s.Cluster.APIEndpoint() }

// Do runs a command that may change the machine.
func Do(ctx context.Context, n Runner, argv ...string) error {
	return n.Run(ctx, node.Command{Argv: argv})
}

// Feed runs a command that reads the content, and returns what it printed. With readOnly it changes nothing.
func Feed(ctx context.Context, n Runner, readOnly bool, content io.Reader, argv ...string) (string, error) {
	var out node.Answer
	err := n.Run(ctx, node.Command{Argv: argv, Stdin: content, Stdout: &out, ReadOnly: readOnly})
	return out.String(), err
}

// Status is the exit status of a command that ended with one, and -1 for any other error.
func Status(err error) int {
	if exit, ended := errors.AsType[*node.ExitError](err); ended && exit.Signal == "" {
		return exit.Status
	}
	return -1
}

// ForEachNode runs f for each node at once, waits for all and returns all errors.
func ForEachNode(nodes []config.Node, f func(config.Node) error) error {
	_, err := FromEachNode(nodes, func(n config.Node) (struct{}, error) { return struct{}{}, f(n) })
	return err
}

// FromEachNode is ForEachNode for a function with a result; the results are in the order of the nodes.
func FromEachNode[T any](nodes []config.Node, f func(config.Node) (T, error)) ([]T, error) {
	results, errs := make([]T, len(nodes)), make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() { results[i], errs[i] = f(n) })
	}
	wg.Wait()
	return results, errors.Join(errs...)
}

// ShowWaiting shows on the step why the check has not succeeded yet.
func ShowWaiting(step *event.Step, check func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := check(ctx)
		if err != nil {
			step.Waiting(err)
		}
		return err
	}
}

// DialCluster connects to an address in the cluster through SSH: through the node that has the address, or for another address, such as the
// virtual IP, through the first control plane that reaches it.
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
