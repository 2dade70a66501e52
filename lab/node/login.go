package node

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os/user"
	"strings"
	"sync"
	"sync/atomic"

	"k8slab/config"
)

// LoginOptions are of the person who logs in. Each func is called at most once at a time; nil means that there is nobody to ask.
type LoginOptions struct {
	KnownHosts string                               // the file that new host keys are added to, beside OpenSSH's own, which are only read
	AcceptNew  bool                                 // take the key of a host that has none yet
	Ask        func(host, fingerprint string) error // whether to take it; an error refuses
	Passphrase func(file string) (string, error)    // of an encrypted private key
	Password   func() (string, error)               // of sudo
}

// Logins makes nodes of machines that exist, which share the person's keys, the known host keys, the password of sudo and the jump hosts.
// It is safe for concurrent use.
type Logins struct {
	keys  Keys
	hosts KnownHosts
	sudo  Sudo

	asks   bool         // there is a person to ask
	asking atomic.Int32 // questions that are open

	mu     sync.Mutex
	jumps  map[string]*Node // by how they are reached
	closed bool
}

// NewLogins does not read or connect anything yet.
func NewLogins(o LoginOptions) *Logins {
	l := &Logins{jumps: map[string]*Node{}, asks: o.Ask != nil || o.Password != nil || o.Passphrase != nil}
	if ask := o.Ask; ask != nil {
		o.Ask = func(host, fingerprint string) error { defer l.question()(); return ask(host, fingerprint) }
	}
	if ask := o.Passphrase; ask != nil {
		o.Passphrase = func(file string) (string, error) { defer l.question()(); return ask(file) }
	}
	if ask := o.Password; ask != nil {
		o.Password = func() (string, error) { defer l.question()(); return ask() }
	}
	l.keys.Passphrase, l.sudo.Password = o.Passphrase, o.Password
	l.hosts.Own, l.hosts.AcceptNew, l.hosts.Ask = o.KnownHosts, o.AcceptNew, o.Ask
	return l
}

func (l *Logins) question() (over func()) {
	l.asking.Add(1)
	return func() { l.asking.Add(-1) }
}

// Asks tells whether there is a person to ask, and Asking whether that person is being asked now. A question is asked when a machine is first
// logged in to.
func (l *Logins) Asks() bool { return l.asks }

// Asking is described at Asks.
func (l *Logins) Asking() bool { return l.asking.Load() > 0 }

// Node is a machine to log in to; mutated is Config's. The caller closes it.
func (l *Logins) Node(name string, login config.SSH, mutated func(what string) error) (*Node, error) {
	jump, err := l.jump(login)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	cfg := l.config(name, login.Address(), login.User, login)
	cfg.Jump, cfg.Mutated = jump, mutated
	if login.Sudo && login.User != "root" {
		cfg.Sudo = &l.sudo
	}
	return New(cfg)
}

func (l *Logins) config(name, address, user string, login config.SSH) Config {
	return Config{Name: name, Address: address, User: user, Keys: &l.keys, IdentityFile: login.IdentityFile, Hosts: &l.hosts}
}

// jump is the last of the login's jump hosts, nil without any. Nodes with the same ones share them.
func (l *Logins) jump(login config.SSH) (jump *Node, err error) {
	if login.Jump == "" {
		return nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed
	}
	way := login.IdentityFile
	for _, hop := range strings.Split(login.Jump, ",") {
		name, host, port := splitHop(hop)
		if host == "" {
			return nil, fmt.Errorf("the jump host %q has no name", hop)
		}
		if name == "" {
			me, err := user.Current() // as ssh does
			if err != nil {
				return nil, fmt.Errorf("the jump host %q has no user: %w", hop, err)
			}
			name = me.Username
		}
		address := net.JoinHostPort(host, cmp.Or(port, "22"))
		way += "," + name + "@" + address
		if l.jumps[way] == nil {
			cfg := l.config("jump host "+host, address, name, login)
			cfg.Jump = jump
			if l.jumps[way], err = New(cfg); err != nil {
				return nil, err
			}
		}
		jump = l.jumps[way]
	}
	return jump, nil
}

// Close closes the jump hosts' connections, and with them those of the nodes behind them.
func (l *Logins) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	var errs []error
	for _, n := range l.jumps {
		errs = append(errs, n.Close())
	}
	l.keys.Close()
	return errors.Join(errs...)
}
