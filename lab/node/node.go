// Package node is one running machine over SSH: run commands, copy files, dial through it. It holds one connection per node, keeps no state
// of its own and never repeats a command that may have started. The machine needs a POSIX login shell and GNU-like coreutils.
package node

import (
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
	Dial    DialFunc // how to reach Address; nil means directly, or through Jump
	Jump    *Node    // a host that Address is reached through; nil means none. Closing the node does not close it
	// Mutated is called, maybe concurrently, right before every command or copy that may change the node. An error refuses it: nothing
	// starts. It may be nil.
	Mutated func(what string) error

	// A machine of the lab is known by its keys:
	Key     []byte // PEM private key of the lab
	HostKey []byte // authorized_keys form of the pinned host key; the only one accepted

	// Any other machine by what the person has:
	Keys         *Keys       // instead of Key
	IdentityFile string      // the private key to try before the other Keys, "" for none
	Hosts        *KnownHosts // instead of HostKey
	Sudo         *Sudo       // commands run as root by sudo; nil: as the login
}

// Node is one machine. It connects when first used and is safe for concurrent use.
type Node struct {
	name, address, user string
	hosts               hostKeys
	offer               func() offer
	dial                DialFunc
	jump                *Node
	sudo                *Sudo
	mutated             func(what string) error

	dialLimit time.Duration // bounds dial and handshake together
	keepAlive time.Duration // between keep-alive requests
	slots     chan struct{} // one element per open session

	mu      sync.Mutex
	closed  bool
	link    *link    // last connection made, maybe dead by now
	attempt *attempt // connection being made, if any
	rights  *rights  // of sudo, once they are known
}

// New checks the configuration; it does not connect.
func New(cfg Config) (*Node, error) {
	if cfg.Name == "" || cfg.Address == "" || cfg.User == "" {
		return nil, errors.New("node: name, address and user are required")
	}
	n := &Node{
		name: cfg.Name, address: cfg.Address, user: cfg.User,
		dial: cfg.Dial, jump: cfg.Jump, sudo: cfg.Sudo, mutated: cfg.Mutated,
		dialLimit: 10 * time.Second, keepAlive: 5 * time.Second,
		slots: make(chan struct{}, maxSessions),
	}
	if cfg.Keys != nil && cfg.Hosts != nil {
		n.hosts, n.offer = cfg.Hosts, func() offer { return cfg.Keys.offer(cfg.IdentityFile) }
	} else if err := n.pin(cfg); err != nil {
		return nil, err
	}
	switch {
	case n.dial != nil:
	case n.jump != nil:
		n.dial = n.jump.tunnel
	default:
		n.dial = (&net.Dialer{}).DialContext
	}
	if n.mutated == nil {
		n.mutated = func(string) error { return nil }
	}
	return n, nil
}

// pin has the node log in with the lab's key, to the machine with the lab's host key.
func (n *Node) pin(cfg Config) error {
	signer, err := ssh.ParsePrivateKey(cfg.Key)
	if err != nil {
		return fmt.Errorf("%s: parse the lab's private key: %w", cfg.Name, err)
	}
	hostKey, _, _, _, err := ssh.ParseAuthorizedKey(cfg.HostKey)
	if err != nil {
		return fmt.Errorf("%s: parse the pinned host key: %w", cfg.Name, err)
	}
	n.hosts, n.offer = pinned{hostKey}, func() offer { return offer{signers: []ssh.Signer{signer}, tried: []string{"the lab's"}} }
	return nil
}

// Name returns the node's name.
func (n *Node) Name() string { return n.name }

// commandError adds the node and the command to an error other than an exit.
func (n *Node) commandError(argv []string, err error) error {
	return fmt.Errorf("%s: %s: %w", n.name, summary(argv), err)
}

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
