package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"

	"golang.org/x/crypto/ssh"
)

// attempt is a connection being made, shared by everybody who waits for it.
type attempt struct {
	done    chan struct{} // closed when link and err are set
	cancel  context.CancelCauseFunc
	waiters int
	link    *link
	err     error
}

// connection returns the live connection, or makes one together with concurrent callers.
func (n *Node) connection(ctx context.Context) (*link, error) {
	if ctx.Err() != nil {
		return nil, n.connectError(context.Cause(ctx))
	}
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil, n.connectError(errClosed)
	}
	if n.link != nil && !n.link.ended() {
		defer n.mu.Unlock()
		return n.link, nil
	}
	if n.attempt == nil {
		n.attempt = n.begin()
	}
	a := n.attempt
	a.waiters++
	n.mu.Unlock()

	select {
	case <-a.done:
		return a.link, a.err
	case <-ctx.Done():
		n.leave(a)
		return nil, n.connectError(context.Cause(ctx))
	}
}

// begin starts an attempt. It belongs to no single caller, so that one who gives up does not fail the others. The caller holds n.mu.
func (n *Node) begin() *attempt {
	ctx, cancel := context.WithCancelCause(context.Background())
	a := &attempt{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer cancel(nil)
		l, err := n.connect(ctx)
		n.mu.Lock()
		if n.attempt == a {
			n.attempt, n.link = nil, l
		} else if l != nil { // everybody left, or the node was closed
			l.fail(context.Cause(ctx))
			l, err = nil, n.connectError(context.Cause(ctx))
		}
		n.mu.Unlock()
		a.link, a.err = l, err
		close(a.done)
	}()
	return a
}

// leave cancels an attempt for which nobody waits any more.
func (n *Node) leave(a *attempt) {
	n.mu.Lock()
	defer n.mu.Unlock()
	a.waiters--
	if a.waiters == 0 && n.attempt == a {
		n.attempt = nil
		a.cancel(context.Canceled)
	}
}

// question is an error that a person can answer. Without an error of answer, connecting is to be tried again.
type question interface {
	error
	answer() error
}

// Login connects, and asks whatever a person may be asked, for which a command's time limit may be too short. A command logs in by itself.
func (n *Node) Login(ctx context.Context) error {
	_, err := n.connection(ctx)
	return err
}

// connect logs in. Questions are asked between two handshakes: a person needs more time than sshd gives.
func (n *Node) connect(ctx context.Context) (*link, error) {
	if n.jump != nil {
		if _, err := n.jump.connection(ctx); err != nil {
			return nil, n.connectError(err)
		}
	}
	l, err := n.handshake(ctx)
	for q, is := errors.AsType[question](err); is; q, is = errors.AsType[question](err) {
		if err := q.answer(); err != nil {
			return nil, n.connectError(err)
		}
		if ctx.Err() != nil {
			return nil, n.connectError(context.Cause(ctx))
		}
		l, err = n.handshake(ctx)
	}
	if err != nil {
		return nil, n.connectError(err)
	}
	if n.sudo != nil {
		if l.rights, err = n.become(ctx, l); err != nil {
			l.fail(err)
			return nil, n.connectError(err)
		}
	}
	return l, nil
}

func (n *Node) handshake(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, n.dialLimit, fmt.Errorf("no SSH handshake within %v", n.dialLimit))
	defer cancel()
	conn, err := n.dial(ctx, "tcp", n.address)
	if err != nil {
		if ctx.Err() != nil {
			err = errors.Join(context.Cause(ctx), err)
		}
		return nil, err
	}
	raw := &watched{Conn: conn}
	// Not a deadline: connections that come out of a tunnel may not support one.
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	offered := n.offer()
	sshConn, channels, requests, err := ssh.NewClientConn(raw, n.address, n.clientConfig(raw, offered))
	if !stop() {
		raw.Close()
		if err == nil {
			go ssh.DiscardRequests(requests)
			go discardChannels(channels)
		}
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, n.refused(err, raw, offered)
	}
	return newLink(ssh.NewClient(sshConn, channels, requests), raw, n.keepAlive), nil
}

func discardChannels(channels <-chan ssh.NewChannel) {
	for channel := range channels {
		_ = channel.Reject(ssh.Prohibited, "")
	}
}

func (n *Node) clientConfig(raw *watched, offered offer) *ssh.ClientConfig {
	return &ssh.ClientConfig{
		User:              n.user,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(offered.signers...)},
		HostKeyAlgorithms: n.hosts.algorithms(n.address),
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			err := n.hosts.check(n.address, key)
			raw.trusted = err == nil
			return err
		},
	}
}

// refused adds to the error of a handshake what was tried.
func (n *Node) refused(err error, raw *watched, offered offer) error {
	noAlgorithm, is := errors.AsType[*ssh.AlgorithmNegotiationError](err)
	switch {
	case is && noAlgorithm.What == "host key":
		return n.hosts.mismatch(n.address)
	case !raw.trusted || n.ofTheLab():
		return err
	}
	if _, asks := errors.AsType[question](err); asks {
		return err
	}
	refusal := &authError{user: n.user, address: n.address, offer: offered, cause: err}
	if strings.Contains(err.Error(), "unable to authenticate") {
		refusal.cause = errors.New("it takes none of the keys")
		return &hopeless{refusal}
	}
	return refusal
}

func (n *Node) ofTheLab() bool {
	_, is := n.hosts.(pinned)
	return is
}

// connectError distinguishes what trying again is useless for, such as a wrong machine, from one that may not be ready yet.
func (n *Node) connectError(cause error) *ConnectError {
	e := &ConnectError{Node: n.name, Address: n.address, Cause: cause}
	if bad, is := errors.AsType[*hopeless](cause); is {
		e.Cause, e.Permanent = bad.error, true
	}
	if hop, is := errors.AsType[*ConnectError](cause); is { // of a jump host
		e.Cause, e.Permanent = cause, hop.Permanent
	}
	return e
}

// watched notices a broken connection before its users see the consequences.
type watched struct {
	net.Conn
	broken  atomic.Bool
	trusted bool // the host key is right; for the handshake
}

func (w *watched) Read(p []byte) (int, error) {
	count, err := w.Conn.Read(p)
	if err != nil {
		w.broken.Store(true)
	}
	return count, err
}

// Dial connects to address as seen from the node; network is "tcp" or "unix". The context bounds only the dialing. The connection ends with
// the node's, and setting a deadline on it fails: SSH channels have none.
func (n *Node) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, _, err := n.dialOn(ctx, network, address)
	return conn, err
}

func (n *Node) dialOn(ctx context.Context, network, address string) (net.Conn, *link, error) {
	conn, l, err := through(ctx, n,
		func(c *ssh.Client) (net.Conn, error) { return c.Dial(network, address) },
		func(c net.Conn) { c.Close() })
	if err == nil {
		return conn, l, nil
	}
	var unreachable *ConnectError
	if errors.As(err, &unreachable) {
		return nil, nil, err
	}
	return nil, nil, fmt.Errorf("%s: dial %s %s: %w", n.name, network, address, err)
}

// tunnel is Dial for a node behind this one. How this one fails is said in its name.
func (n *Node) tunnel(ctx context.Context, network, address string) (net.Conn, error) {
	conn, l, err := n.dialOn(ctx, network, address)
	if refused, is := errors.AsType[*ssh.OpenChannelError](err); is && refused.Reason == ssh.Prohibited {
		return nil, fmt.Errorf("%w; next: AllowTcpForwarding yes in its /etc/ssh/sshd_config", err)
	}
	if err != nil {
		return nil, err
	}
	return &tunnelled{conn, n.name, l}, nil
}

// tunnelled is a connection through a jump host.
type tunnelled struct {
	net.Conn
	name string
	link *link
}

func (t *tunnelled) Read(p []byte) (int, error) {
	count, err := t.Conn.Read(p)
	if err != nil && t.link.broken() {
		err = fmt.Errorf("connection to %s lost: %w", t.name, cmp.Or(t.link.cause, err))
	}
	return count, err
}
