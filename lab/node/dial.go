package node

import (
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/crypto/ssh"
)

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
