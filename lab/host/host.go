// Package host is this computer: its obstacles to a lab, the packages that it lacks, and the libvirt daemon of a lab. That daemon is the
// lab's own, in its own network and mount namespaces, or for virtual machines the computer's.
package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"k8slab/lab/wait"
)

// Host is a running libvirt daemon, and the network namespace of its machines.
type Host struct {
	Own    bool   // the daemon belongs to the lab
	Socket string // of the daemon for the lab's URI
	netns  string // path of the namespace of an own daemon, "" for this process's
	pid    int    // of the process that holds the own daemon's namespaces
}

// sockets are where a libvirt daemon listens, the modular ones first: libvirt.org/daemons.html.
var sockets = map[string][]string{
	"qemu:///system": {"/run/libvirt/virtqemud-sock", "/run/libvirt/libvirt-sock"},
	"lxc:///system":  {"/run/libvirt/virtlxcd-sock", "/run/libvirt/libvirt-sock"},
}

// NetworkSocket is the socket of the network driver: of a daemon of its own where libvirt is modular, otherwise the same one.
func (h *Host) NetworkSocket() string { return h.socketOf("virtnetworkd-sock") }

// StorageSocket is the socket of the storage driver.
func (h *Host) StorageSocket() string { return h.socketOf("virtstoraged-sock") }

func (h *Host) socketOf(daemon string) string {
	modular := filepath.Join(filepath.Dir(h.Socket), daemon)
	if filepath.Base(h.Socket) != "libvirt-sock" && answers(modular) {
		return modular
	}
	return h.Socket
}

// Computers returns the computer's own daemon for the URI, or an error that wraps fs.ErrNotExist where none answers.
func Computers(uri string) (*Host, error) {
	for _, socket := range sockets[uri] {
		if answers(socket) {
			return &Host{Socket: socket}, nil
		}
	}
	return nil, fmt.Errorf("no libvirt daemon of this computer answers for %s: %w", uri, fs.ErrNotExist)
}

// Connect returns the lab's own daemon, or an error that wraps fs.ErrNotExist where none runs. dir is the lab's directory for it.
func Connect(dir string) (*Host, error) {
	pid, err := servePID(dir)
	if err != nil {
		return nil, err
	}
	h := &Host{
		Own: true, Socket: filepath.Join(dir, "run", "libvirt-sock"),
		netns: fmt.Sprintf("/proc/%d/ns/net", pid), pid: pid,
	}
	if !answers(h.Socket) {
		return nil, ErrStarting
	}
	return h, nil
}

// Ensure is Connect, but starts the lab's own daemon if it does not run. scope is its cgroup: see Scope.
func Ensure(ctx context.Context, dir, scope string) (*Host, error) {
	h, err := Connect(dir)
	if errors.Is(err, ErrStarting) { // by a run that was killed meanwhile
		err = wait.For(ctx, "the lab's own libvirtd to start", 10*time.Second, 50*time.Millisecond, func(context.Context) (err error) {
			h, err = Connect(dir)
			if err != nil && !errors.Is(err, ErrStarting) {
				err = wait.Hopeless(err)
			}
			return err
		})
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return h, err
	}
	if err := start(ctx, dir, scope); err != nil {
		return nil, err
	}
	return Connect(dir)
}

// answers tells whether something listens on the socket: its file can outlive its daemon, or systemd listens for a daemon that is not
// started yet.
func answers(socket string) bool {
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

// Dial connects to an address in the machines' network.
func (h *Host) Dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	dial := func() {
		var d net.Dialer
		conn, err = d.DialContext(ctx, network, address)
	}
	if h.netns == "" {
		dial()
		return conn, err
	}
	if nsErr := InNamespace(h.netns, dial); nsErr != nil {
		return nil, nsErr
	}
	return conn, err
}

// InNamespace calls f on a thread in the network namespace. A socket stays in the namespace that it was made in.
func InNamespace(path string, f func()) error {
	ns, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("the lab's network namespace is gone: %w", err)
	}
	defer func() { _ = ns.Close() }()
	done := make(chan error, 1)
	go func() {
		// The goroutine ends without unlocking, so the thread ends with it and no other goroutine gets to see the namespace.
		lockThread()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("enter the lab's network namespace: %w", err)
			return
		}
		f()
		done <- nil
	}()
	return <-done
}

// Enter is the argv that runs argv where the machines' network and libvirt daemon are.
func (h *Host) Enter(argv []string) []string {
	if !h.Own {
		return argv
	}
	wd, err := os.Getwd()
	if err != nil {
		wd = "/"
	}
	return append([]string{"nsenter", "--target", fmt.Sprint(h.pid), "--mount", "--net", "--wd=" + wd, "--"}, argv...)
}
