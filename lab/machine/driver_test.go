package machine_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8slab/lab/host"
	"k8slab/lab/machine"
)

// host.Ensure starts its own executable as the process that serves libvirt: here that is this test.
func TestMain(m *testing.M) {
	if n := len(host.ServeArgs); len(os.Args) == n+2 && slices.Equal(os.Args[1:n+1], host.ServeArgs) {
		fmt.Fprintln(os.Stderr, host.Serve(os.Args[n+1]))
		os.Exit(1)
	}
	code := m.Run()
	stopDaemon()
	os.Exit(code)
}

var daemon struct {
	once sync.Once
	dir  string
	host *host.Host
	err  error
}

// libvirtd is a real daemon of these tests' own, for its test driver: that keeps imaginary machines in memory, for each connection anew.
func libvirtd(t *testing.T) *host.Host {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it starts a libvirtd in namespaces of its own")
	}
	program, err := exec.LookPath("libvirtd")
	if err != nil {
		t.Skip("needs libvirtd")
	}
	daemon.once.Do(func() { daemon.host, daemon.err = startDaemon(program) })
	if daemon.err != nil {
		t.Fatal(daemon.err)
	}
	return daemon.host
}

func startDaemon(program string) (*host.Host, error) {
	dir, err := os.MkdirTemp("", "k8slab-test-")
	if err != nil {
		return nil, err
	}
	daemon.dir = dir
	// A lab that runs on this computer keeps its daemon, and its pid file.
	wrapper := fmt.Sprintf("#!/bin/sh\nexec %s --pid-file %s \"$@\"\n", program, filepath.Join(dir, "pid"))
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(bin, "libvirtd"), []byte(wrapper), 0o700); err != nil {
		return nil, err
	}
	if err := os.Setenv("PATH", bin+":"+os.Getenv("PATH")); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return host.Ensure(ctx, filepath.Join(dir, "libvirt"), "")
}

func stopDaemon() {
	if daemon.dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := host.Stop(ctx, filepath.Join(daemon.dir, "libvirt")); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	_ = os.RemoveAll(daemon.dir)
}

const (
	labID    = "6f1d0f5c-2f4e-4c53-9a55-0d6f3c1e2b7a"
	otherID  = "11111111-2222-4333-8444-555555555555"
	running  = 1
	paused   = 3
	off      = 5
	crashed  = 6
	unmarked = ""
)

// domain is one imaginary machine.
func domain(name, owner, node string, state int) string {
	note := ""
	if owner != unmarked {
		note = fmt.Sprintf(`<metadata><machine xmlns="https://k8slab/" lab="lab" id="%s" node="%s"/></metadata>`, owner, node)
	}
	return fmt.Sprintf(`<domain type="test" xmlns:test="http://libvirt.org/schemas/domain/test/1.0">
<name>%s</name>%s<memory>4096</memory><os><type>hvm</type></os><on_crash>preserve</on_crash><test:runstate>%d</test:runstate></domain>`, name, note, state)
}

func network(name, id string) string {
	return fmt.Sprintf(`<network><name>%s</name><uuid>%s</uuid><bridge name="k8slabtest"/><ip address="10.30.0.1" netmask="255.255.255.0"/></network>`, name, id)
}

// lab is the lab's machines on a computer that has these objects. changes are the calls that it was about to make.
func lab(t *testing.T, objects ...string) (l *machine.Lab, changes *[]string) {
	t.Helper()
	h := libvirtd(t)
	dir := t.TempDir()
	node := filepath.Join(dir, "node.xml")
	if err := os.WriteFile(node, []byte("<node>"+strings.Join(objects, "\n")+"</node>"), 0o600); err != nil {
		t.Fatal(err)
	}
	changes = &[]string{}
	l = machine.Open(machine.Config{
		URI: "test://" + node, Socket: h.Socket, NetworkSocket: h.Socket, StorageSocket: h.Socket, Lab: "lab", ID: labID,
		Dir: filepath.Join(dir, "machines"), Pool: filepath.Base(dir) + "-" + filepath.Base(filepath.Dir(dir)), PoolDir: filepath.Join(dir, "pool"),
		Mutated: func(what string) { *changes = append(*changes, what) },
	})
	t.Cleanup(l.Close)
	return l, changes
}

func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// dnsmasq reads a network's hosts as another user, and nobody else comes past the directory above.
func TestDirectoryThatDnsmasqReads(t *testing.T) {
	libvirtd(t)
	for name, want := range map[string]os.FileMode{"lib": 0o700, "lib/libvirt": 0o755} {
		info, err := os.Stat(filepath.Join(daemon.dir, "libvirt", name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
