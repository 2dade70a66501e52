package node

import (
	"context"
	"errors"
	"fmt"
	"net"
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

func (n *Node) connect(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, n.dialLimit, fmt.Errorf("no SSH handshake within %v", n.dialLimit))
	defer cancel()
	conn, err := n.dial(ctx, "tcp", n.address)
	if err != nil {
		if ctx.Err() != nil {
			err = errors.Join(context.Cause(ctx), err)
		}
		return nil, n.connectError(err)
	}
	raw := &watched{Conn: conn}
	// Not a deadline: connections that come out of a tunnel may not support one.
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	sshConn, channels, requests, err := ssh.NewClientConn(raw, n.address, n.clientConfig())
	if !stop() {
		raw.Close()
		if err == nil {
			go ssh.DiscardRequests(requests)
			go discardChannels(channels)
		}
		return nil, n.connectError(context.Cause(ctx))
	}
	if err != nil {
		return nil, n.connectError(err)
	}
	return newLink(ssh.NewClient(sshConn, channels, requests), raw, n.keepAlive), nil
}

func discardChannels(channels <-chan ssh.NewChannel) {
	for channel := range channels {
		_ = channel.Reject(ssh.Prohibited, "")
	}
}

func (n *Node) clientConfig() *ssh.ClientConfig {
	// Ask for the pinned key's type only: a server with several host keys would otherwise be free to present another one.
	algorithms := []string{n.hostKey.Type()}
	if n.hostKey.Type() == ssh.KeyAlgoRSA {
		algorithms = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return &ssh.ClientConfig{
		User:              n.user,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(n.signer)},
		HostKeyAlgorithms: algorithms,
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			if sameKey(key, n.hostKey) {
				return nil
			}
			return &hostKeyError{got: ssh.FingerprintSHA256(key), want: ssh.FingerprintSHA256(n.hostKey)}
		},
	}
}

// hostKeyError says that the machine is not the one that the lab made: its host key is another.
type hostKeyError struct{ got, want string }

func (e *hostKeyError) Error() string {
	return fmt.Sprintf("host key mismatch: the machine presents %s, but the lab's state pins %s: "+
		"another machine answers at this address, or this one was recreated without the lab's host key", e.got, e.want)
}

// connectError distinguishes a wrong machine, for which trying again is useless, from one that may not be ready yet.
func (n *Node) connectError(cause error) *ConnectError {
	e := &ConnectError{Node: n.name, Address: n.address, Cause: cause}
	var wrongKey *hostKeyError
	var noAlgorithm *ssh.AlgorithmNegotiationError
	switch {
	case errors.As(cause, &wrongKey):
		e.Cause, e.Permanent = wrongKey, true
	case errors.As(cause, &noAlgorithm) && noAlgorithm.What == "host key":
		e.Cause = &hostKeyError{got: "no key of type " + n.hostKey.Type(), want: ssh.FingerprintSHA256(n.hostKey)}
		e.Permanent = true
	}
	return e
}

// watched notices a broken connection before its users see the consequences.
type watched struct {
	net.Conn
	broken atomic.Bool
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
	conn, _, err := through(ctx, n,
		func(c *ssh.Client) (net.Conn, error) { return c.Dial(network, address) },
		func(c net.Conn) { c.Close() })
	if err == nil {
		return conn, nil
	}
	var unreachable *ConnectError
	if errors.As(err, &unreachable) {
		return nil, err
	}
	return nil, fmt.Errorf("%s: dial %s %s: %w", n.name, network, address, err)
}
