package config

import (
	"cmp"
	"net"
	"strconv"
)

// Source is where machines come from.
type Source string

// The accepted sources of machines.
const (
	MachinesLibvirt Source = "libvirt" // labctl makes them
	MachinesSSH     Source = "ssh"     // they exist, and have an SSH server
)

// SSH says how to log in to a machine that exists. It has no secret: keys are
// named by their files, and a password of sudo is asked for.
type SSH struct {
	// Host is the address or name of the SSH server; default the node's IP.
	// Only of a node.
	Host string `yaml:"host,omitempty"`
	// Port is from 1 to 65535; default 22.
	Port int `yaml:"port,omitempty"`
	// User is the login; default root.
	User string `yaml:"user,omitempty"`
	// IdentityFile is the file of a private key, an absolute path or one that
	// begins with ~/; default: the keys of the agent, and then those that ssh
	// would try.
	IdentityFile string `yaml:"identity_file,omitempty"`
	// Jump is the [USER@]HOST[:PORT] of a jump host, or several with commas
	// between them, as for ssh -J: ParseLogin reads each. A node's own "none"
	// turns off Cluster.SSH's; default none.
	Jump string `yaml:"jump,omitempty"`
	// Sudo has commands run with sudo; a login as root goes without. Whether
	// sudo wants a password is found out.
	Sudo bool `yaml:"sudo,omitempty"`
	// KeepLabnode has labnode stay on the machine in the login's cache
	// directory, instead of being copied for each command.
	KeepLabnode bool `yaml:"keep_labnode,omitempty"`
}

// OverSSH tells whether the machines exist already, so that labctl neither makes
// nor removes any.
func (c *Cluster) OverSSH() bool { return c.Machines == MachinesSSH }

// Login is how to log in to the node, complete with defaults.
func (c *Cluster) Login(n Node) SSH {
	own, all := n.SSH, c.SSH
	s := SSH{
		Host: cmp.Or(own.Host, n.IP.String()), Port: cmp.Or(own.Port, all.Port, 22), User: cmp.Or(own.User, all.User, "root"),
		IdentityFile: cmp.Or(own.IdentityFile, all.IdentityFile), Jump: cmp.Or(own.Jump, all.Jump),
		KeepLabnode: own.KeepLabnode || all.KeepLabnode,
	}
	s.Sudo = s.User != "root" && (own.Sudo || all.Sudo)
	if s.Jump == noJump {
		s.Jump = ""
	}
	return s
}

// Address is the HOST:PORT of the SSH server.
func (s SSH) Address() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// APIEndpoint is the HOST:PORT of the cluster's API.
func (c *Cluster) APIEndpoint() string {
	switch n := c.Network; {
	case n.Endpoint != "":
		return n.Endpoint
	case n.VirtualIP.IsValid() || !c.OverSSH():
		return net.JoinHostPort(n.VirtualIP.String(), "6443")
	}
	return net.JoinHostPort(c.ControlPlanes()[0].IP.String(), "6443")
}
