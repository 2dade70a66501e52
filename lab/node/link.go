package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// missed is how many keep-alive intervals may pass without an answer.
const missed = 3

// link is one SSH connection, and whether it still works.
type link struct {
	client *ssh.Client
	raw    *watched
	rights *rights       // of sudo; nil if commands run as the login
	gone   chan struct{} // closed when the connection can no longer be used

	once  sync.Once
	cause error // readable once gone is closed
}

func newLink(client *ssh.Client, raw *watched, keepAlive time.Duration) *link {
	l := &link{client: client, raw: raw, gone: make(chan struct{})}
	go func() { l.fail(client.Wait()) }()
	go l.stayAlive(keepAlive)
	return l
}

// fail ends the connection, and with it every caller blocked on it.
func (l *link) fail(cause error) {
	l.once.Do(func() {
		l.cause = cause
		close(l.gone)
		// The socket, not the client: closing that waits for its write lock, which a write to a dead machine may hold.
		l.raw.Close()
	})
}

func (l *link) ended() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

// broken is ended for one who has just seen the consequences: the connection's own end may take a moment to be noticed.
func (l *link) broken() bool {
	if l.raw.broken.Load() {
		select {
		case <-l.gone:
		case <-time.After(grace):
		}
	}
	return l.ended()
}

// lost is the error of a command that was cut off.
func (l *link) lost() error {
	if l.broken() && l.cause != nil {
		return fmt.Errorf("%w: %w", ErrLost, l.cause)
	}
	return ErrLost
}

// stayAlive closes a connection whose other end no longer answers. TCP alone would not notice a machine that was switched off while labctl
// waits for its output.
func (l *link) stayAlive(interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-l.gone:
			return
		case <-tick.C:
		}
		answered := make(chan error, 1)
		go func() {
			_, _, err := l.client.SendRequest("keepalive@openssh.com", true, nil)
			answered <- err
		}()
		timeout := time.NewTimer(missed * interval)
		select {
		case <-l.gone:
		case err := <-answered:
			if err != nil {
				l.fail(err)
			}
		case <-timeout.C:
			l.fail(fmt.Errorf("no answer to keep-alive requests for %v", missed*interval))
		}
		timeout.Stop()
	}
}

// through opens a channel on the node's connection. If the connection is dead it is made again, once: a channel that did not open cannot
// have started anything.
func through[T any](ctx context.Context, n *Node, open func(*ssh.Client) (T, error), discard func(T)) (T, *link, error) {
	for again := false; ; again = true {
		l, err := n.connection(ctx)
		if err != nil {
			return *new(T), nil, err
		}
		channel, err := await(ctx, l, open, discard)
		if err == nil {
			return channel, l, nil
		}
		var refused *ssh.OpenChannelError
		if errors.As(err, &refused) {
			return *new(T), nil, err
		}
		if ctx.Err() != nil {
			return *new(T), nil, context.Cause(ctx)
		}
		l.fail(err)
		if again {
			return *new(T), nil, n.connectError(fmt.Errorf("connection lost: %w", l.cause))
		}
	}
}

// await makes open return when ctx ends; a channel that opens later is discarded.
func await[T any](ctx context.Context, l *link, open func(*ssh.Client) (T, error), discard func(T)) (T, error) {
	type result struct {
		channel T
		err     error
	}
	opened := make(chan result, 1)
	go func() {
		channel, err := open(l.client)
		opened <- result{channel, err}
	}()
	var err error
	select {
	case r := <-opened:
		return r.channel, r.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-l.gone:
		err = l.cause
	}
	go func() {
		if r := <-opened; r.err == nil {
			discard(r.channel)
		}
	}()
	return *new(T), err
}

// ask runs a short line in the login shell and returns what it said on stderr.
func (l *link) ask(ctx context.Context, line, stdin string) (said string, err error) {
	s, err := await(ctx, l, (*ssh.Client).NewSession, func(s *ssh.Session) { s.Close() })
	if err != nil {
		return "", err
	}
	defer s.Close()
	var stderr tail
	s.Stdin, s.Stderr = strings.NewReader(stdin), &stderr
	_, err = await(ctx, l, func(*ssh.Client) (struct{}, error) { return struct{}{}, s.Run(line) }, func(struct{}) {})
	return stderr.String(), err
}
