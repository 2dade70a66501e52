// Package lab is the harness: it plans, brings up, checks and takes down the cluster that cluster.yaml describes. Every step first looks
// at the real state, so running it again is how an interrupted run is resumed.
package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8slab/config"
	"k8slab/lab/event"
	"k8slab/lab/host"
	"k8slab/lab/image"
	"k8slab/lab/machine"
	"k8slab/lab/node"
)

// Options of a lab.
type Options struct {
	Events  *event.Stream
	Labnode func() (string, error) // gives the path of the labnode binary, needed to build an image
}

// Lab is one lab: what cluster.yaml says, and what of it exists.
type Lab struct {
	described *config.Cluster // by cluster.yaml
	cluster   *config.Cluster // as it is: see AsMade
	opts      Options
	events    *event.Stream
	state     state
	id        string
	uri       string // what the lab was made with, or will be: never auto

	differences []Difference // of described and what the lab was made with

	host     *host.Host
	machines *machine.Lab
	nodes    map[string]*node.Node
	opening  sync.Mutex

	bundling sync.Mutex
	bundled  image.Bundle

	mu      sync.Mutex
	changes []string
}

// New returns the lab that the cluster describes, as it was made if it was. It touches nothing.
func New(cluster *config.Cluster, opts Options) (*Lab, error) {
	s, err := openState(cluster.Name)
	if err != nil {
		return nil, err
	}
	l := &Lab{described: cluster, opts: opts, events: opts.Events, state: s, nodes: map[string]*node.Node{}}
	if err := l.recount(); err != nil {
		return nil, err
	}
	if l.uri = l.cluster.Libvirt.URI; l.uri == "auto" {
		if made, err := os.ReadFile(s.path("uri")); err == nil { // of a lab that a labctl before madeFile made
			l.uri = string(made)
		} else {
			l.uri, _ = host.Choose()
		}
	}
	if l.events == nil {
		l.events = event.NewStream()
	}
	return l, nil
}

// ErrNotUp is returned for a lab that has no machines yet.
var ErrNotUp = errors.New("the lab is not up: run `labctl up`")

// open connects to the lab that exists, changing nothing. It returns ErrNotUp when there is none.
func (l *Lab) open() error {
	h, err := l.Host()
	if err != nil {
		return err
	}
	return l.attach(h)
}

// Host is the libvirt host of the lab that exists; ErrNotUp when there is none.
func (l *Lab) Host() (*host.Host, error) {
	if !l.state.exists() {
		return nil, ErrNotUp
	}
	h, err := l.connect()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotUp
	}
	return h, err
}

// connect finds the daemon that has the lab's machines, or is to have them. An error that wraps fs.ErrNotExist is that there is none.
func (l *Lab) connect() (*host.Host, error) {
	if l.ownDaemon() {
		return host.Connect(l.state.path("libvirt"))
	}
	h, err := host.Computers(l.uri)
	if err != nil && l.state.settled() {
		return nil, fmt.Errorf("lab %s was made with this computer's libvirt daemon, which does not answer for %s; next: start it (systemctl start libvirtd, or virtqemud), and run this again",
			l.cluster.Name, l.uri)
	}
	return h, err
}

// ownDaemon tells whether the lab has, or would get, a libvirt daemon of its own. One of containers gets it, so that no firewall, route or other
// lab of this computer is in their way. A lab keeps its daemon, whatever else appears on this computer.
func (l *Lab) ownDaemon() bool {
	if _, err := os.Stat(l.state.path("libvirt")); err == nil {
		return true
	}
	if l.state.settled() {
		return false
	}
	_, err := host.Computers(l.uri)
	return err != nil || l.uri == host.Containers
}

// machinesDir has the containers' disks.
const machinesDir = "machines"

// poolDir is the directory of the storage pool, as the daemon sees it.
func (l *Lab) poolDir() string {
	return filepath.Join("/var/lib/libvirt/images", l.cluster.Libvirt.Pool)
}

// rootKey is root's key on all machines, a file of the state.
const rootKey = "ssh/id_ed25519"

// attach makes the clients for the host's daemon and the lab's nodes. Nothing connects yet.
func (l *Lab) attach(h *host.Host) (err error) {
	if l.id, err = l.state.id(); err != nil {
		return err
	}
	l.host = h
	l.machines = machine.Open(machine.Config{
		URI: l.uri, Socket: h.Socket, NetworkSocket: h.NetworkSocket(), StorageSocket: h.StorageSocket(), Lab: l.cluster.Name, ID: l.id,
		Dir: l.state.path(machinesDir), Pool: l.cluster.Libvirt.Pool, PoolDir: l.poolDir(), Partition: l.partition(l.id), KVM: host.KVM(), Mutated: l.mutated,
	})
	for _, n := range l.cluster.Members() {
		if l.nodes[n.Name], err = l.connection(h, n); err != nil {
			return err
		}
	}
	return nil
}

// connection is a new one to the node. It connects when first used.
func (l *Lab) connection(h *host.Host, n config.Node) (*node.Node, error) {
	key, _, err := l.state.keyPair(rootKey)
	if err != nil {
		return nil, err
	}
	_, hostKey, err := l.state.keyPair(hostKeyName(n.Name))
	if err != nil {
		return nil, err
	}
	return node.New(node.Config{
		Name: n.Name, Address: net.JoinHostPort(n.IP.String(), "22"), User: "root",
		Key: key, HostKey: hostKey, Dial: h.Dial, Mutated: l.mutated,
	})
}

// emulated tells whether the machines' processors are computed, about ten times slower than real ones.
func (l *Lab) emulated() bool {
	return host.Emulated() || l.uri == host.VirtualMachines && !host.KVM()
}

// Patience is how many times longer than on this computer's own processors everything may take in the lab. Of an emulated 1 + 1, a machine's
// own part of a diagnosis took 5.5 s when nothing else was asked of it; a container's takes less than 1.
func (l *Lab) Patience() int {
	if l.emulated() {
		return 5
	}
	return 1
}

// within bounds a look at the lab.
func (l *Lab) within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	limit *= time.Duration(l.Patience())
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
}

// pace is how often a condition of the whole cluster is looked at: asking must not be what loads it.
func (l *Lab) pace() time.Duration {
	if l.emulated() {
		return 2 * time.Second
	}
	return 200 * time.Millisecond
}

// partition is the cgroup partition of containers: what is left in it, down removes.
func (l *Lab) partition(id string) string {
	if scope := l.scope(id); scope != "" {
		return scope + "/nodes"
	}
	return "/" + cgroupName(l.cluster.Name, id)
}

// scope is where the lab's own daemon is in the cgroup tree, "" where that does not matter.
func (l *Lab) scope(id string) string { return host.Scope(cgroupName(l.cluster.Name, id)) }

// cgroupName has the lab's identity too: labs of one name can be in several state directories.
func cgroupName(name, id string) string { return "k8slab-" + name + "-" + id[:8] }

// Close closes every connection.
func (l *Lab) Close() {
	for _, n := range l.nodes {
		_ = n.Close()
	}
	if l.machines != nil {
		l.machines.Close()
	}
}

// mutated counts each change that a client of ours is about to make, at the border where it leaves.
func (l *Lab) mutated(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes = append(l.changes, what)
}

// Changes lists what this process has changed so far: libvirt calls, commands on nodes, Kubernetes and etcd writes.
func (l *Lab) Changes() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.changes...)
}

// Name is the lab's name.
func (l *Lab) Name() string { return l.cluster.Name }

// Events is where what happens to the lab is shown.
func (l *Lab) Events() *event.Stream { return l.events }

// Node gives a connection to the node, for a user's own commands: a new one each time, as the machine may be another one since. The caller
// closes it. It may be called by several at once.
func (l *Lab) Node(name string) (*node.Node, error) {
	h, err := l.Host()
	if err != nil {
		return nil, err
	}
	n, err := l.member(name)
	if err != nil {
		return nil, err
	}
	return l.connection(h, n)
}

// Kubeconfig is the path of the administrator's kubeconfig for use on this computer.
func (l *Lab) Kubeconfig() (string, error) {
	path := l.state.path("kubeconfig")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("no kubeconfig yet: %w", ErrNotUp)
	}
	return path, nil
}

// Kubectl is the kubectl of the lab's image.
func (l *Lab) Kubectl() (string, error) {
	root, err := os.ReadFile(l.state.path("image"))
	if err != nil {
		return "", ErrNotUp
	}
	return filepath.Join(string(root), "root", "usr", "bin", "kubectl"), nil
}

// RunLog makes the file that a run's events go to, and removes the oldest of the lab's logs.
func RunLog(lab, verb string) (string, error) {
	root, err := StateDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, ".logs", lab) // no lab has such a name
	const kept = 50
	old, _ := filepath.Glob(filepath.Join(dir, "*.jsonl")) // in order of time, by their names
	for len(old) >= kept {
		_ = os.Remove(old[0])
		_ = os.Remove(strings.TrimSuffix(old[0], ".jsonl") + ".log") // an onboarding's, in levels
		old = old[1:]
	}
	return filepath.Join(dir, fmt.Sprintf("%s-%s-%d.jsonl", time.Now().UTC().Format("20060102T150405"), verb, os.Getpid())), nil
}

// together runs f for each node at once, waits for all and returns all errors.
func together(nodes []config.Node, f func(config.Node) error) error {
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() { errs[i] = f(n) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// dialCluster connects to an address in the cluster through a control plane: its own if the address is a node's, else the first that
// can reach it (the virtual IP).
func (l *Lab) dialCluster(ctx context.Context, network, address string) (net.Conn, error) {
	ip, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	for _, n := range l.cluster.Members() {
		if n.IP.String() == ip {
			return l.nodes[n.Name].Dial(ctx, network, address)
		}
	}
	var errs []error
	for _, n := range l.cluster.ControlPlanes() {
		conn, err := l.nodes[n.Name].Dial(ctx, network, address)
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
