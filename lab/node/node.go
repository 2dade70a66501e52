// Package node is one running machine over SSH: run commands, copy files, dial through it. It holds one connection per node, keeps no state
// of its own and never repeats a command that may have started. The machine needs a POSIX login shell and GNU-like coreutils.
package node

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// sshd allows 10 sessions per connection by default. Two are left free, because a cancelled command occupies its session until it has
// really ended.
const maxSessions = 8

// DialFunc reaches an address, possibly from another network namespace.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Config says how to reach a node and whom to trust there.
type Config struct {
	Name    string   // node name, used in errors
	Address string   // host:port of sshd
	User    string   // login name
	Key     []byte   // PEM private key of the lab
	HostKey []byte   // authorized_keys form of the pinned host key; the only one accepted
	Dial    DialFunc // how to reach Address; nil means directly
	// Mutated is called, maybe concurrently, right before every command or copy that may change the node. An error refuses it: nothing
	// starts. It may be nil.
	Mutated func(what string) error
}

// Node is one machine. It connects when first used and is safe for concurrent use.
type Node struct {
	name, address, user string
	signer              ssh.Signer
	hostKey             ssh.PublicKey
	dial                DialFunc
	mutated             func(what string) error

	dialLimit time.Duration // bounds dial and handshake together
	keepAlive time.Duration // between keep-alive requests
	slots     chan struct{} // one element per open session

	mu      sync.Mutex
	closed  bool
	link    *link    // last connection made, maybe dead by now
	attempt *attempt // connection being made, if any
}

// New checks the configuration; it does not connect.
func New(cfg Config) (*Node, error) {
	if cfg.Name == "" || cfg.Address == "" || cfg.User == "" {
		return nil, errors.New("node: name, address and user are required")
	}
	signer, err := ssh.ParsePrivateKey(cfg.Key)
	if err != nil {
		return nil, fmt.Errorf("%s: parse the lab's private key: %w", cfg.Name, err)
	}
	hostKey, _, _, _, err := ssh.ParseAuthorizedKey(cfg.HostKey)
	if err != nil {
		return nil, fmt.Errorf("%s: parse the pinned host key: %w", cfg.Name, err)
	}
	n := &Node{
		name: cfg.Name, address: cfg.Address, user: cfg.User,
		signer: signer, hostKey: hostKey, dial: cfg.Dial, mutated: cfg.Mutated,
		dialLimit: 10 * time.Second, keepAlive: 5 * time.Second,
		slots: make(chan struct{}, maxSessions),
	}
	if n.dial == nil {
		n.dial = (&net.Dialer{}).DialContext
	}
	if n.mutated == nil {
		n.mutated = func(string) error { return nil }
	}
	return n, nil
}

// Name returns the node's name.
func (n *Node) Name() string { return n.name }

// Close ends the connection and everything that runs over it. The node stays closed.
func (n *Node) Close() error {
	n.mu.Lock()
	n.closed = true
	l, a := n.link, n.attempt
	n.link, n.attempt = nil, nil
	n.mu.Unlock()
	if a != nil {
		a.cancel(errClosed)
	}
	if l != nil {
		l.fail(errClosed)
		_ = l.client.Wait() // always reports how the connection ended, which is our doing
	}
	return nil
}

// GenerateKey makes an ed25519 private key in OpenSSH's format, for a user or for a host.
func GenerateKey() ([]byte, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate ssh key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return nil, fmt.Errorf("encode ssh private key: %w", err)
	}
	return pem.EncodeToMemory(block), nil
}

// PublicKey is the public part of a private key, a line as authorized_keys has it.
func PublicKey(private []byte) ([]byte, error) {
	signer, err := ssh.ParsePrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("ssh private key: %w", err)
	}
	return ssh.MarshalAuthorizedKey(signer.PublicKey()), nil
}

func sameKey(a, b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }
