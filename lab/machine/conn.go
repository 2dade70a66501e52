package machine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/digitalocean/go-libvirt"
	"github.com/digitalocean/go-libvirt/socket/dialers"
)

// conn is one connection to one daemon. go-libvirt's calls take no context and wait for ever for a daemon that hangs. Closing their socket
// ends them; the next call connects again.
type conn struct {
	socket, uri string

	connecting chan struct{} // held by the one call that connects; the others wait no longer than they want to
	mu         sync.Mutex
	libvirt    *libvirt.Libvirt
	raw        net.Conn
}

func newConn(socket, uri string) *conn {
	return &conn{socket: socket, uri: uri, connecting: make(chan struct{}, 1)}
}

// call runs do with a connection. It returns when ctx ends, even if the daemon hangs.
func (c *conn) call(ctx context.Context, what string, do func(*libvirt.Libvirt) error) error {
	l, raw, err := c.open(ctx)
	if err == nil {
		stop := context.AfterFunc(ctx, func() { c.drop(raw) })
		err = do(l)
		stop()
	}
	if ctx.Err() != nil {
		return fmt.Errorf("libvirt (%s): %s: %w; the daemon at %s did not answer in time, see its log", c.uri, what, context.Cause(ctx), c.socket)
	}
	if err != nil {
		return fmt.Errorf("libvirt (%s): %s: %w", c.uri, what, err)
	}
	return nil
}

func (c *conn) open(ctx context.Context) (*libvirt.Libvirt, net.Conn, error) {
	select {
	case c.connecting <- struct{}{}:
		defer func() { <-c.connecting }()
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	if l, raw := c.current(); l != nil {
		return l, raw, nil
	}
	var d net.Dialer
	raw, err := d.DialContext(ctx, "unix", c.socket)
	if err != nil {
		return nil, nil, err
	}
	l := libvirt.NewWithDialer(dialers.NewAlreadyConnected(raw))
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	if err := l.ConnectToURI(libvirt.ConnectURI(c.uri)); err != nil {
		_ = raw.Close()
		return nil, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.libvirt, c.raw = l, raw
	return l, raw, nil
}

func (c *conn) current() (*libvirt.Libvirt, net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.libvirt == nil || !c.libvirt.IsConnected() {
		return nil, nil
	}
	return c.libvirt, c.raw
}

// drop closes a connection on which a call timed out, unless it was replaced by a newer one.
func (c *conn) drop(raw net.Conn) {
	_ = raw.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.raw == raw {
		c.libvirt, c.raw = nil, nil
	}
}

func (c *conn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.raw != nil {
		_ = c.raw.Close()
		c.libvirt, c.raw = nil, nil
	}
}

// is tells whether libvirt answered with exactly this code. (libvirt.IsNotFound knows domains only.)
func is(err error, code libvirt.ErrorNumber) bool {
	var e libvirt.Error
	return errors.As(err, &e) && e.Code == uint32(code)
}
