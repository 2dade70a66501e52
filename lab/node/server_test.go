package node

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// call is one command a test server was asked to run.
type call struct {
	line           string // empty for a login shell
	stdin          io.Reader
	stdout, stderr io.Writer
	signals        chan string
	closed         chan struct{}  // the client closed the channel or the connection ended
	term           string         // terminal type, if one was requested
	sizes          chan [2]uint32 // width, height: the first size and every change
}

// end is how a command ended.
type end struct {
	status  uint32
	signal  string
	silence bool // no exit status at all
}

// server is a real SSH server in this process, which can be told to misbehave.
type server struct {
	t          *testing.T
	listener   net.Listener
	authorized []byte
	mute       atomic.Bool // accept connections and say nothing
	handle     func(*call) end
	wg         sync.WaitGroup

	mu          sync.Mutex
	hostKeys    []ssh.Signer
	maxSessions int
	delay       time.Duration // before the handshake
	conns       map[*serverConn]bool
	accepted    int // connections so far
	sessions    int // open now
	peak        int // most sessions at once
	refused     int // sessions beyond maxSessions
}

// serverConn can fall silent without closing.
type serverConn struct {
	net.Conn
	frozen atomic.Bool
	closed chan struct{}
	once   sync.Once
}

func (c *serverConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.frozen.Load() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *serverConn) Write(p []byte) (int, error) {
	if c.frozen.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *serverConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func newServer(t *testing.T, handle func(*call) end) (*server, Config) {
	t.Helper()
	userPEM, userPublic := mustKey(t)
	hostPEM, hostPublic := mustKey(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{
		t: t, listener: listener, authorized: userPublic, maxSessions: 10, handle: handle,
		hostKeys: []ssh.Signer{mustSigner(t, hostPEM)}, conns: map[*serverConn]bool{},
	}
	s.wg.Go(s.serve)
	t.Cleanup(func() {
		listener.Close()
		s.drop()
		s.wg.Wait()
	})
	return s, Config{
		Name: "cp1", Address: listener.Addr().String(), User: "root",
		Key: userPEM, HostKey: hostPublic, Dial: (&net.Dialer{}).DialContext,
	}
}

func mustKey(t *testing.T) (private, public []byte) {
	t.Helper()
	private, err := GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	if public, err = PublicKey(private); err != nil {
		t.Fatal(err)
	}
	return private, public
}

func mustSigner(t *testing.T, private []byte) ssh.Signer {
	t.Helper()
	signer, err := ssh.ParsePrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// change changes how the server behaves from now on.
func (s *server) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// each applies f to the connections of now.
func (s *server) each(f func(*serverConn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		f(c)
	}
}

func (s *server) drop()   { s.each(func(c *serverConn) { c.Close() }) }
func (s *server) freeze() { s.each(func(c *serverConn) { c.frozen.Store(true) }) }

func (s *server) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

func (s *server) serve() {
	for {
		raw, err := s.listener.Accept()
		if err != nil {
			return
		}
		c := &serverConn{Conn: raw, closed: make(chan struct{})}
		s.mu.Lock()
		s.conns[c] = true
		s.accepted++
		s.mu.Unlock()
		s.wg.Go(func() {
			defer c.Close()
			s.talk(c)
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
		})
	}
}

func (s *server) talk(c *serverConn) {
	if s.mute.Load() {
		<-c.closed
		return
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if bytes.Equal(ssh.MarshalAuthorizedKey(key), s.authorized) {
			return nil, nil
		}
		return nil, errors.New("unknown key")
	}}
	s.mu.Lock()
	for _, key := range s.hostKeys {
		config.AddHostKey(key)
	}
	delay := s.delay
	s.mu.Unlock()
	time.Sleep(delay)
	conn, channels, requests, err := ssh.NewServerConn(c, config)
	if err != nil {
		return
	}
	s.wg.Go(func() { ssh.DiscardRequests(requests) })
	for channel := range channels {
		switch channel.ChannelType() {
		case "session":
			s.wg.Go(func() { s.session(channel) })
		case "direct-tcpip":
			s.wg.Go(func() { s.forward(channel) })
		default:
			_ = channel.Reject(ssh.UnknownChannelType, "")
		}
	}
	_ = conn.Wait()
}
