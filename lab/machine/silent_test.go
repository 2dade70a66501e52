package machine

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// silent is a daemon that takes connections and never answers.
func silent(t *testing.T) (socket string, accepted *atomic.Int32) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	accepted = &atomic.Int32{}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			t.Cleanup(func() { _ = conn.Close() })
		}
	}()
	return socket, accepted
}

func TestSilentDaemon(t *testing.T) {
	calls := []struct {
		name string
		call func(context.Context, *Lab) error
	}{
		{"ensure", func(ctx context.Context, l *Lab) error { return l.Ensure(ctx, Spec{Node: "cp1"}) }},
		{"state", func(ctx context.Context, l *Lab) error { _, err := l.State(ctx, "cp1"); return err }},
		{"list", func(ctx context.Context, l *Lab) error { _, err := l.List(ctx); return err }},
		{"power off", func(ctx context.Context, l *Lab) error { return l.PowerOff(ctx, "cp1") }},
		{"suspend", func(ctx context.Context, l *Lab) error { return l.Suspend(ctx, "cp1") }},
		{"resume", func(ctx context.Context, l *Lab) error { return l.Resume(ctx, "cp1") }},
		{"delete", func(ctx context.Context, l *Lab) error { return l.Delete(ctx, "cp1") }},
		{"ensure network", func(ctx context.Context, l *Lab) error { return l.EnsureNetwork(ctx, Network{}) }},
		{"network active", func(ctx context.Context, l *Lab) error { _, err := l.NetworkActive(ctx); return err }},
		{"delete network", func(ctx context.Context, l *Lab) error { return l.DeleteNetwork(ctx) }},
	}
	why := errors.New("no answer for 50ms")
	for _, tt := range calls {
		t.Run(tt.name, func(t *testing.T) {
			socket, accepted := silent(t)
			var changes []string
			l := Open(Config{
				URI: "lxc:///system", Socket: socket, NetworkSocket: socket, Lab: "lab", ID: labID, Dir: t.TempDir(),
				Mutated: func(what string) { changes = append(changes, what) },
			})
			defer l.Close()
			for attempt := int32(1); attempt <= 2; attempt++ { // the second shows that a given-up connection is not used again
				ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, why)
				begin := time.Now()
				err := tt.call(ctx, l)
				cancel()
				if took := time.Since(begin); took > 2*time.Second {
					t.Errorf("returned after %s", took)
				}
				if !errors.Is(err, why) || !strings.Contains(err.Error(), socket) || !strings.Contains(err.Error(), "lxc:///system") {
					t.Errorf("got %v, want the cause, the URI and the socket", err)
				}
				if n := accepted.Load(); n != attempt {
					t.Errorf("%d connections after %d calls", n, attempt)
				}
			}
			if len(changes) > 0 {
				t.Errorf("counted as changes, though nothing was even looked at: %q", changes)
			}
		})
	}
}

// A call must not inherit the patience of one that came before it.
func TestSilentDaemonAndTwoCallers(t *testing.T) {
	socket, accepted := silent(t)
	l := Open(Config{URI: "lxc:///system", Socket: socket, NetworkSocket: socket, Lab: "lab", ID: labID})
	defer l.Close()
	patient, stop := context.WithTimeout(t.Context(), 3*time.Second)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = l.State(patient, "cp1")
	}()
	for accepted.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	hasty, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if _, err := l.State(hasty, "cp2"); err == nil {
		t.Error("no error")
	}
	if took := time.Since(begin); took > time.Second {
		t.Errorf("a call with 50ms returned after %s, with the call before it", took)
	}
	stop()
	<-done
}

func TestNoDaemon(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "none")
	l := Open(Config{URI: "lxc:///system", Socket: socket, NetworkSocket: socket, Lab: "lab", ID: labID})
	_, err := l.State(t.Context(), "cp1")
	if err == nil || !strings.Contains(err.Error(), socket) || !strings.Contains(err.Error(), "look up lab-cp1") {
		t.Errorf("got %v, want what was tried and where", err)
	}
}

// With modular daemons the networks have a daemon of their own.
func TestNetworkDaemon(t *testing.T) {
	domains, toDomains := silent(t)
	networks, toNetworks := silent(t)
	l := Open(Config{URI: "qemu:///system", Socket: domains, NetworkSocket: networks, Lab: "lab", ID: labID})
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := l.NetworkActive(ctx)
	if err == nil || !strings.Contains(err.Error(), networks) || !strings.Contains(err.Error(), "network:///system") {
		t.Errorf("got %v", err)
	}
	if toDomains.Load() != 0 || toNetworks.Load() != 1 {
		t.Errorf("%d connections for domains, %d for networks", toDomains.Load(), toNetworks.Load())
	}
}
