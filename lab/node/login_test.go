package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8slab/config"
)

// person's logins to servers that take the person's key.
func newLogins(t *testing.T, o LoginOptions, servers ...*server) *Logins {
	t.Helper()
	p := newPerson(t)
	private, public := mustKey(t)
	p.write(t, "id_ed25519", private)
	for _, s := range servers {
		s.authorized = public
	}
	o.KnownHosts, o.AcceptNew = filepath.Join(p.home, "known"), true
	l := NewLogins(o)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// at is the login to a server.
func at(t *testing.T, s *server) config.SSH {
	t.Helper()
	host, port, err := net.SplitHostPort(s.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	number, _ := strconv.Atoi(port)
	return config.SSH{Host: host, Port: number, User: "ops"}
}

func mustNode(t *testing.T, l *Logins, name string, login config.SSH) *Node {
	t.Helper()
	n, err := l.Node(name, login, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// Fifty nodes are reached through two hops, over one connection to each.
func TestJumpHosts(t *testing.T) {
	settle(t)
	first, _ := newServer(t, succeed)
	second, _ := newServer(t, succeed)
	target, _ := newServer(t, func(c *call) end { _, _ = io.WriteString(c.stdout, c.line); return end{} })
	target.change(func() { target.maxSessions = 50 })
	l := newLogins(t, LoginOptions{}, first, second, target)
	login := at(t, target)
	login.Jump = "ops@" + at(t, first).Address() + "," + at(t, second).Address()
	var wg sync.WaitGroup
	for i := range 50 {
		n := mustNode(t, l, fmt.Sprintf("w%d", i), login)
		wg.Go(func() {
			if out, err := n.Read(within(t, 60*time.Second), "echo", n.Name()); err != nil || out != "echo "+n.Name() {
				t.Errorf("%q, %v", out, err)
			}
		})
	}
	wg.Wait()
	if first.connections() != 1 || second.connections() != 1 || target.connections() != 50 {
		t.Errorf("%d, %d and %d connections", first.connections(), second.connections(), target.connections())
	}
}

func TestJumpHostFails(t *testing.T) {
	settle(t)
	gate, _ := newServer(t, succeed)
	running := make(chan struct{}, 3)
	target, _ := newServer(t, func(c *call) end { running <- struct{}{}; <-c.closed; return end{} })
	l := newLogins(t, LoginOptions{}, gate, target)
	login := at(t, target)
	login.Jump = "ops@" + at(t, gate).Address()
	ended := make(chan error, 3)
	for i := range 3 {
		n := mustNode(t, l, fmt.Sprintf("w%d", i), login)
		go func() { ended <- n.Run(context.Background(), Command{Argv: []string{"sleep", "1000"}}) }()
	}
	for range 3 {
		<-running
	}
	gate.drop()
	promptly(t, func() {
		for range 3 {
			if err := <-ended; !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "connection to jump host 127.0.0.1 lost") {
				t.Error(err)
			}
		}
	})

	beyond := login
	beyond.Port = 1
	err := mustNode(t, l, "cp1", beyond).Login(within(t, 20*time.Second))
	if err == nil || !strings.HasPrefix(err.Error(), "cp1: connect to 127.0.0.1:1: jump host 127.0.0.1: dial tcp 127.0.0.1:1: ") {
		t.Error(err)
	}
	gate.listener.Close()
	gate.drop()
	err = mustNode(t, l, "cp1", login).Login(within(t, 20*time.Second))
	if connect, is := errors.AsType[*ConnectError](err); !is || connect.Permanent ||
		!strings.HasPrefix(err.Error(), "cp1: connect to "+login.Address()+": jump host 127.0.0.1: connect to ") {
		t.Error(err)
	}
}

// What trying again cannot help at a jump host, it cannot help behind it.
func TestJumpHostRefuses(t *testing.T) {
	settle(t)
	gate, _ := newServer(t, succeed)
	l := newLogins(t, LoginOptions{}, gate)
	_, gate.authorized = mustKey(t)
	login := config.SSH{Host: "192.0.2.1", Port: 22, User: "root", Jump: "ops@" + at(t, gate).Address()}
	err := mustNode(t, l, "cp1", login).Login(within(t, 20*time.Second))
	if connect, is := errors.AsType[*ConnectError](err); !is || !connect.Permanent ||
		!strings.Contains(err.Error(), "cp1: connect to 192.0.2.1:22: jump host 127.0.0.1: connect to ") || !strings.Contains(err.Error(), "the login of ops") {
		t.Error(err)
	}
}

func TestLogins(t *testing.T) {
	l := newLogins(t, LoginOptions{})
	refused := config.SSH{Host: "192.0.2.1", Port: 22, User: "root", Jump: "ops@"}
	if _, err := l.Node("cp1", refused, nil); err == nil || err.Error() != `cp1: the jump host "ops@" has no name` {
		t.Error(err)
	}
	for user, want := range map[string]bool{"root": false, "ops": true} {
		n := mustNode(t, l, "cp1", config.SSH{Host: "192.0.2.1", Port: 22, User: user, Sudo: true})
		if (n.sudo != nil) != want {
			t.Errorf("%s: sudo %v", user, n.sudo)
		}
	}
	_ = l.Close()
	refused.Jump = "gate"
	if _, err := l.Node("cp1", refused, nil); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
