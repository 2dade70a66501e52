package session

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"k8slab/config"
	"k8slab/lab/event"
	"k8slab/lab/host"
	"k8slab/lab/machine"
	"k8slab/lab/node"
	"k8slab/lab/state"
)

// RootKey is root's key on all machines, a file of the state.
const RootKey = "ssh/id_ed25519"

// DaemonDir is the directory of a libvirt daemon of the lab's own.
func DaemonDir(l state.Lab) string { return l.Path("libvirt") }

// PoolDir is the directory of the storage pool in the daemon's mount namespace.
func PoolDir(l state.Lab) string {
	return filepath.Join("/var/lib/libvirt/images", l.Cluster.Libvirt.Pool)
}

// HostKey is the key of the node's SSH server, a file of the state.
func HostKey(node string) string { return filepath.Join("ssh", "host_"+node) }

// Connect finds the libvirt daemon of the lab's machines. The error wraps fs.ErrNotExist when there is none.
func Connect(l state.Lab) (*host.Host, error) {
	if OwnDaemon(l) {
		return host.Connect(DaemonDir(l))
	}
	h, err := host.Computers(l.URI)
	if err != nil && l.Settled() {
		return nil, fmt.Errorf("lab %s was made with this computer's libvirt daemon, which does not answer for %s; next: start it (systemctl start libvirtd, or virtqemud), and run this again",
			l.Cluster.Name, l.URI)
	}
	return h, err
}

// OwnDaemon tells whether the lab has, or would get, a libvirt daemon of its own. A lab of containers gets one, in its own network
// namespace, so that no firewall, route or other lab of this computer disturbs it. A lab keeps the daemon that it was made with.
func OwnDaemon(l state.Lab) bool {
	if _, err := os.Stat(DaemonDir(l)); err == nil {
		return true
	}
	if l.Settled() {
		return false
	}
	_, err := host.Computers(l.URI)
	return err != nil || l.URI == host.Containers
}

// HasUplink tells whether the lab's nodes reach what this computer reaches.
func HasUplink(l state.Lab) bool {
	u := l.Cluster.Network.Uplink
	return u == config.UplinkNAT || u == config.UplinkAuto && !OwnDaemon(l)
}

// Open makes the clients for the host's daemon and the lab's nodes. Nothing connects yet.
func Open(l state.Lab, h *host.Host, events *event.Stream, o Options) (*Session, error) {
	id, err := l.ID()
	if err != nil {
		return nil, err
	}
	s := &Session{Lab: l, ID: id, Events: events, Host: h, Nodes: map[string]Node{}, Options: o}
	s.Libvirt = machine.Open(machine.Config{
		URI: l.URI, Socket: h.Socket, NetworkSocket: h.NetworkSocket(), StorageSocket: h.StorageSocket(), Lab: l.Cluster.Name, ID: id,
		Dir: l.Path("machines"), Pool: l.Cluster.Libvirt.Pool, PoolDir: PoolDir(l), Partition: Partition(l, id), KVM: host.KVM(), Mutated: o.Told(),
	})
	s.Machines = s.Libvirt
	for _, n := range l.Cluster.Members() {
		if s.Nodes[n.Name], err = Connection(l, h, n, o.Mutated); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// Connection is a new SSH client for the node. It connects when first used.
func Connection(l state.Lab, h *host.Host, n config.Node, mutated func(string) error) (*node.Node, error) {
	key, _, err := l.KeyPair(RootKey)
	if err != nil {
		return nil, err
	}
	_, hostKey, err := l.KeyPair(HostKey(n.Name))
	if err != nil {
		return nil, err
	}
	return node.New(node.Config{
		Name: n.Name, Address: net.JoinHostPort(n.IP.String(), "22"), User: "root",
		Key: key, HostKey: hostKey, Dial: h.Dial, Mutated: mutated,
	})
}

// Partition is the cgroup of the containers. Down ends whatever still runs in it.
func Partition(l state.Lab, id string) string {
	if scope := Scope(l, id); scope != "" {
		return scope + "/nodes"
	}
	return "/" + CgroupName(l.Cluster.Name, id)
}

// Scope is the cgroup of the lab's own daemon, "" on a computer without systemd or cgroup v2.
func Scope(l state.Lab, id string) string { return host.Scope(CgroupName(l.Cluster.Name, id)) }

// CgroupName also has a part of the lab's UUID: several state directories can have labs of the same name.
func CgroupName(name, id string) string { return "k8slab-" + name + "-" + id[:8] }

// consoleEnd is how much of a console is read from its end, in bytes.
const consoleEnd = 8 << 10

// Console is the end of what a virtual machine wrote to its console; a container has none.
func (s *Session) Console(name string) string {
	ctx, cancel := context.WithTimeoutCause(context.Background(), DaemonBudget, ErrDaemonSilent)
	defer cancel()
	if s.Libvirt == nil {
		return ""
	}
	text, _ := s.Libvirt.Console(ctx, name, consoleEnd) // what could be read is better than nothing
	return strings.ToValidUTF8(text, "?")
}
