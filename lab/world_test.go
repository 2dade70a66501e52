//go:debug tlsmlkem=0

package lab

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"k8slab/config"
	"k8slab/lab/guard"
	"k8slab/lab/join"
	"k8slab/lab/labtest"
	"k8slab/lab/machine"
	"k8slab/lab/node"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// world is a lab in memory: machines, kubeadm on them, an API server and an etcd. labctl's own clients talk to it, over connections that its
// nodes dial. It refuses what it was not told about, and can fail or die at any call.
type world struct {
	t   *testing.T
	lab *Lab
	pki pki

	mu       sync.Mutex
	machines map[string]*box
	members  []*member
	objects  map[string]object // of the API, by path
	uploaded string            // certificate key of the uploaded certificates
	alive    map[string]bool   // Nodes whose Lease a machine outside of the world renews
	pods     map[string]int    // how many pods a workload has had on a node
	deaf     []string          // what no pod reaches
	cramped  string            // whose etcd has no space
	upgraded string            // the version that somebody has upgraded the API server to
	stuck    map[string]bool   // Deployments of add-ons whose pods do not start
	joins    []string          // nodes, in the order in which their joins ended
	calls    []string          // in order: libvirt's, commands on nodes, requests that change something
	missed   []string          // requests for what is not there
	side                       // of joins
	broken   error             // a command or request that nobody told the world about
	fails    func(call string) error
	ctx      context.Context // ends when labctl is killed
	death    context.CancelFunc
	dieAt    int // the change before which labctl is killed; 0 for none
	changes  int
	dead     bool
	expire   bool // certificates that nobody can tell from an administrator's may be left: they expire
	api      *pipes
	probe    *pipes
	ended    []func()
	agrees   func(context.Context, guard.Change) error // to changes of machines that exist
	live     bool                                      // machines get another size while they run
}

// box is a machine.
type box struct {
	node   config.Node
	state  machine.State
	facts  join.Facts
	files  map[string]string
	voter  bool // its etcd's data are a member's
	silent bool // it does not answer over SSH
	outage *join.Outcome
	blocks string // what a check of the machine finds, for good
	uuid   string // of its domain: another one for a machine that was made anew
	saved  map[string]moment
	damage
	waits  func() bool // what its kubeadm waits for until it goes on
	stop   bool        // somebody has stopped its join
	etcd   *pipes
	server *grpc.Server
	size   machine.Spec // CPUs and Memory
	ran    machine.Spec // the same when it started
}

// newWorld is a lab of which nothing was made yet but its identity. It is for a synctest bubble.
func newWorld(t *testing.T, file string, edit func(*config.Cluster)) *world {
	t.Helper()
	labtest.Own(t)
	c := labtest.Cluster(t, file)
	c.Libvirt.URI = "lxc:///system"
	if edit != nil {
		edit(c)
	}
	w := &world{t: t, ctx: t.Context(), machines: map[string]*box{}, objects: map[string]object{}, alive: map[string]bool{}, pods: map[string]int{}}
	var err error
	if w.lab, err = New(c, Options{}); err != nil {
		t.Fatal(err)
	}
	w.pki = newPKI(t, w.lab.found.Cluster)
	for _, n := range w.lab.found.Cluster.Nodes {
		w.addBox(n)
	}
	w.serve()
	w.attach(w.lab)
	t.Cleanup(func() {
		w.lab.Close()
		for _, end := range w.ended {
			end()
		}
	})
	return w
}

// keepalivedConf is a file of a control plane's seed.
const keepalivedConf = "etc/keepalived/keepalived.conf"

// addBox adds a machine that does not exist yet.
func (w *world) addBox(n config.Node) {
	id, err := w.lab.found.ID()
	if err != nil {
		w.t.Fatal(err)
	}
	w.machines[n.Name] = &box{node: n, state: machine.Absent, files: map[string]string{}, facts: join.Facts{MachineID: state.MachineID(id, n.Name)}}
}

// attach has the lab's sessions be of this world.
func (w *world) attach(l *Lab) {
	l.open = func(_ context.Context, closed state.Lab, _ bool) (*session.Session, error) {
		id, err := closed.ID()
		if err != nil {
			return nil, err
		}
		s := labtest.Of(closed)
		s.ID, s.Events = id, l.events
		s.Mutated = func(what string) error {
			if err := l.mutated(what); err != nil { // it is not made
				return err
			}
			w.mutated(what)
			return nil
		}
		s.Machines = worldMachines{w, s.Mutated}
		for _, n := range closed.Cluster.Members() {
			s.Nodes[n.Name] = &worldNode{w, n.Name, s.Mutated}
		}
		return s, nil
	}
}

// reborn is labctl started again, after it was killed.
func (w *world) reborn() *Lab {
	w.t.Helper()
	w.mu.Lock()
	w.ctx, w.death = w.t.Context(), nil
	w.dieAt, w.changes, w.dead, w.fails = 0, 0, false, nil
	w.mu.Unlock()
	l, err := New(w.lab.described, Options{Confirm: w.agrees})
	if err != nil {
		w.t.Fatal(err)
	}
	w.attach(l)
	w.lab = l
	return l
}

// killAt has labctl killed before its change of that number; whoever runs it must hand it w.ctx.
func (w *world) killAt(change int) {
	w.dieAt = change
	w.ctx, w.death = context.WithCancel(w.t.Context())
}

var errKilled = errors.New("labctl was killed")

// mutated is told of each change before it is made.
func (w *world) mutated(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changes++; w.dieAt > 0 && w.changes >= w.dieAt {
		w.dead = true
		if w.death != nil {
			w.death()
		}
	}
	w.calls = append(w.calls, what)
}

// called refuses a call of a labctl that was killed, and one that is to fail. The caller has the lock.
func (w *world) called(call string) error {
	if w.dead {
		return errKilled
	}
	if w.fails != nil {
		return w.fails(call)
	}
	return nil
}

// unknown is something that the world was not told about.
func (w *world) unknown(what string) error {
	w.broken = fmt.Errorf("the world does not know %s", what)
	return w.broken
}

func (w *world) box(name string) *box { return w.machines[name] }

// worldMachines are its machines, as libvirt's.
type worldMachines struct {
	w       *world
	mutated func(string) error
}

func (m worldMachines) do(name, what string, change func(*box)) error {
	if err := m.mutated("libvirt: " + what + " " + name); err != nil {
		return err
	}
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	if err := m.w.called("libvirt: " + what + " " + name); err != nil {
		return err
	}
	change(m.w.box(name))
	return nil
}

func (m worldMachines) State(_ context.Context, name string) (machine.State, error) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	return m.w.box(name).state, m.w.called("libvirt: state " + name)
}

func (m worldMachines) List(context.Context) (all []machine.Machine, err error) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	for _, name := range slices.Sorted(mapKeys(m.w.machines)) {
		if b := m.w.box(name); b.state != machine.Absent {
			all = append(all, machine.Machine{Node: name, State: b.state, ID: b.uuid, Maker: b.maker})
		}
	}
	return all, m.w.called("libvirt: list")
}

func mapKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (m worldMachines) Ensure(_ context.Context, spec machine.Spec) error {
	m.w.mu.Lock()
	running := m.w.box(spec.Node).state == machine.Running
	m.w.mu.Unlock()
	if running {
		return nil
	}
	return m.do(spec.Node, "start", func(b *box) {
		if b.state == machine.Absent {
			b.uuid, b.maker = rand.Text(), machine.Labctl
			b.size = machine.Spec{CPUs: spec.CPUs, Memory: spec.Memory}
		}
		b.state, b.ran = machine.Running, b.size
		if text, err := os.ReadFile(filepath.Join(spec.Seed, keepalivedConf)); err == nil {
			b.files["/"+keepalivedConf] = string(text)
		}
		b.heals("restart")
	})
}

func (m worldMachines) PowerOff(_ context.Context, name string) error {
	return m.do(name, "power off", func(b *box) { b.state = machine.Off })
}

func (m worldMachines) Suspend(_ context.Context, name string) error {
	return m.do(name, "suspend", func(b *box) { b.state = machine.Paused })
}

func (m worldMachines) Resume(_ context.Context, name string) error {
	return m.do(name, "resume", func(b *box) { b.state = machine.Running })
}

func (m worldMachines) Delete(_ context.Context, name string) error {
	return m.do(name, "delete", func(b *box) {
		id := b.facts.MachineID
		*b = box{node: b.node, state: machine.Absent, files: map[string]string{}, facts: join.Facts{MachineID: id}, etcd: b.etcd, server: b.server}
	})
}

// answers tells whether the machine can be reached. The caller has the lock.
func (b *box) answers() error {
	if b.state != machine.Running || b.silent {
		return &node.ConnectError{Node: b.node.Name, Address: b.node.IP.String() + ":22", Cause: errors.New("no route to host")}
	}
	return nil
}

// lose makes a machine one without any memory, as one that was deleted and made anew by hand.
func (w *world) lose(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.box(name)
	b.facts, b.files, b.voter = join.Facts{MachineID: b.facts.MachineID}, map[string]string{}, false
}

// change changes the world by hand.
func (w *world) change(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

// dial is a connection from a node into the cluster's network.
func (w *world) dial(ctx context.Context, from, address string) (net.Conn, error) {
	w.mu.Lock()
	host, port, _ := strings.Cut(address, ":")
	err := w.called("dial " + address)
	if err == nil {
		err = w.box(from).answers()
	}
	var to *pipes
	if err == nil {
		to, err = w.listener(host, port)
	}
	w.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return to.dial(ctx)
}

// listener is what listens at the address. The virtual IP is at the first control plane that runs an API server.
func (w *world) listener(host, port string) (*pipes, error) {
	refused := fmt.Errorf("dial %s:%s: connection refused", host, port)
	for _, b := range w.machines {
		virtual := port == "6443" && host == w.lab.found.Cluster.Network.VirtualIP.String()
		if b.node.IP.String() != host && !virtual {
			continue
		}
		switch serves := b.answers() == nil && b.facts.Joined && b.node.Role == config.ControlPlane; {
		case serves && port == "6443" && w.quorum():
			return w.api, nil
		case serves && port == "2379" && b.voter:
			return b.etcd, nil
		}
	}
	if port == "8080" {
		return w.probe, nil
	}
	return nil, refused
}

// globState are files of the lab's directory.
func globState(w *world, elem ...string) ([]string, error) {
	return filepath.Glob(w.lab.found.Path(elem...))
}

// pipes is a listener in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
