package node

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

func succeed(*call) end { return end{} }

func TestNewRefusesBadConfig(t *testing.T) {
	private, public := mustKey(t)
	good := Config{Name: "cp1", Address: "192.0.2.1:22", User: "root", Key: private, HostKey: public}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Config){
		"name":     func(c *Config) { c.Name = "" },
		"address":  func(c *Config) { c.Address = "" },
		"user":     func(c *Config) { c.User = "" },
		"key":      func(c *Config) { c.Key = public },
		"host key": func(c *Config) { c.HostKey = private },
	} {
		cfg := good
		spoil(&cfg)
		if _, err := New(cfg); err == nil {
			t.Errorf("bad %s accepted", name)
		}
	}
}

func TestConnectErrors(t *testing.T) {
	for name, test := range map[string]struct {
		spoil     func(*testing.T, *server, *Config)
		permanent bool
		says      string
	}{
		"another host key": {func(t *testing.T, s *server, _ *Config) {
			other, _ := mustKey(t)
			s.change(func() { s.hostKeys = []ssh.Signer{mustSigner(t, other)} })
		}, true, "lab's state"},
		"host key of another type": {func(t *testing.T, s *server, _ *Config) {
			s.change(func() { s.hostKeys = []ssh.Signer{ecdsaSigner(t)} })
		}, true, "no key of type ssh-ed25519"},
		"wrong user key": {func(t *testing.T, _ *server, c *Config) { c.Key, _ = mustKey(t) }, false, "unable to authenticate"},
		"refused":        {func(_ *testing.T, s *server, _ *Config) { s.listener.Close() }, false, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			settle(t)
			s, cfg := newServer(t, succeed)
			test.spoil(t, s, &cfg)
			n := newNode(t, cfg)
			_, err := n.Read(within(t, 20*time.Second), "true")
			var connect *ConnectError
			if !errors.As(err, &connect) {
				t.Fatal(err)
			}
			if connect.Permanent != test.permanent || connect.Node != "cp1" || connect.Address != cfg.Address ||
				!strings.Contains(err.Error(), test.says) {
				t.Errorf("permanent %v: %v", connect.Permanent, err)
			}
		})
	}
}

// A server with more than one host key must be made to present the pinned one.
func TestPinnedHostKeyAmongOthers(t *testing.T) {
	s, n := setup(t, succeed)
	s.change(func() { s.hostKeys = append([]ssh.Signer{ecdsaSigner(t)}, s.hostKeys...) })
	if _, err := n.Read(within(t, 20*time.Second), "true"); err != nil {
		t.Error(err)
	}
}

func TestSilentServer(t *testing.T) {
	s, n := setup(t, succeed)
	s.mute.Store(true)
	why := errors.New("not waiting any longer")
	ctx, cancel := context.WithTimeoutCause(context.Background(), 50*time.Millisecond, why)
	defer cancel()
	promptly(t, func() {
		if _, err := n.Read(ctx, "true"); !errors.Is(err, why) {
			t.Error(err)
		}
	})
	n.dialLimit = 50 * time.Millisecond
	promptly(t, func() {
		_, err := n.Read(context.Background(), "true")
		var connect *ConnectError
		if !errors.As(err, &connect) || connect.Permanent || !strings.Contains(err.Error(), "no SSH handshake within 50ms") {
			t.Error(err)
		}
	})
}

func TestOneWaiterLeavesTheOthersConnect(t *testing.T) {
	s, n := setup(t, succeed)
	s.change(func() { s.delay = 200 * time.Millisecond })
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := n.Read(within(t, 50*time.Millisecond), "true"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
	time.Sleep(20 * time.Millisecond)
	wg.Go(func() {
		if _, err := n.Read(within(t, 20*time.Second), "true"); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	if got := s.connections(); got != 1 {
		t.Errorf("%d connections", got)
	}
}

func TestReconnect(t *testing.T) {
	s, n := setup(t, succeed)
	ctx := within(t, 20*time.Second)
	for i := range 5 {
		if _, err := n.Read(ctx, "true"); err != nil {
			t.Fatal(err)
		}
		if got := s.connections(); got != i+1 {
			t.Errorf("%d connections", got)
		}
		s.drop() // the next use may or may not know yet
	}
}

// Only a command that cannot have started may be tried again.
func TestLostCommandIsNotRepeated(t *testing.T) {
	var s *server
	var runs atomic.Int32
	s, n := setup(t, func(*call) end { runs.Add(1); s.drop(); return end{silence: true} })
	_, err := n.Read(within(t, 20*time.Second), "reboot")
	if !errors.Is(err, ErrLost) || runs.Load() != 1 {
		t.Errorf("%d runs: %v", runs.Load(), err)
	}
}

func TestKeepAlive(t *testing.T) {
	running := make(chan struct{}, 1)
	s, n := setup(t, func(c *call) end {
		if c.line == "hang" {
			running <- struct{}{}
			<-c.closed
		}
		return end{}
	})
	n.keepAlive = 20 * time.Millisecond
	promptly(t, func() {
		if _, err := n.Read(context.Background(), "true"); err != nil {
			t.Error(err)
		}
	})
	time.Sleep(10 * n.keepAlive)
	if s.connections() != 1 || n.link.ended() {
		t.Error("an idle connection was dropped")
	}
	go func() { <-running; s.freeze() }()
	promptly(t, func() {
		_, err := n.Read(context.Background(), "hang")
		if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "keep-alive") {
			t.Error(err)
		}
	})
	s.drop()
	if _, err := n.Read(within(t, 20*time.Second), "true"); err != nil || s.connections() != 2 {
		t.Errorf("%d connections, %v", s.connections(), err)
	}
}

func TestCancelOnDeadConnection(t *testing.T) {
	s, n := setup(t, succeed)
	if _, err := n.Read(within(t, 20*time.Second), "true"); err != nil {
		t.Fatal(err)
	}
	s.freeze()
	promptly(t, func() {
		if _, err := n.Read(within(t, 50*time.Millisecond), "true"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if _, err := n.Dial(within(t, 50*time.Millisecond), "tcp", "127.0.0.1:1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

func TestClose(t *testing.T) {
	running := make(chan struct{}, 1)
	_, n := setup(t, func(c *call) end { running <- struct{}{}; <-c.closed; return end{} })
	go func() { <-running; n.Close() }()
	promptly(t, func() {
		if _, err := n.Read(context.Background(), "hang"); !errors.Is(err, ErrLost) || !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		if _, err := n.Read(context.Background(), "true"); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

func TestCloseWhileConnecting(t *testing.T) {
	s, n := setup(t, succeed)
	s.mute.Store(true)
	time.AfterFunc(50*time.Millisecond, func() { n.Close() })
	promptly(t, func() {
		if _, err := n.Read(context.Background(), "true"); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

func TestDial(t *testing.T) {
	_, n := setup(t, succeed)
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		conn, err := echo.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.Copy(conn, conn)
	}()
	ctx, cancel := context.WithCancel(context.Background())
	conn, err := n.Dial(ctx, "tcp", echo.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	cancel() // must not reach the connection
	time.Sleep(20 * time.Millisecond)
	text := strings.Repeat("through the node ", 1000)
	go func() { _, _ = io.WriteString(conn, text) }()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		t.Error(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

func TestDialRefused(t *testing.T) {
	s, n := setup(t, succeed)
	_, err := n.Dial(within(t, 20*time.Second), "tcp", "127.0.0.1:1")
	var connect *ConnectError
	if err == nil || errors.As(err, &connect) || !strings.HasPrefix(err.Error(), "cp1: dial tcp 127.0.0.1:1: ") {
		t.Error(err)
	}
	if _, err := n.Read(within(t, 20*time.Second), "true"); err != nil || s.connections() != 1 {
		t.Errorf("%d connections, %v", s.connections(), err)
	}
}
