// Package external lends a lab to a program that is not labctl's own: files with everything that it takes to log in, and a place in the network
// of the machines. The program is as trusted as who runs labctl: it gets root on every node.
package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/atomicfile"
	"k8slab/lab/command"
	"k8slab/lab/host"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// Variables of the program's environment, besides KUBECONFIG.
const (
	PhaseVariable   = "LABCTL_PHASE"      // what is wanted of it
	SecondsVariable = "LABCTL_SECONDS"    // its time, in whole seconds
	NodesVariable   = "LABCTL_NODES"      // path of a JSON list of Login
	SSHVariable     = "LABCTL_SSH_CONFIG" // the same for ssh -F
	ClusterVariable = "LABCTL_CLUSTER"    // path of cluster.yaml
)

// Login is how to log in to a node.
type Login struct {
	Name       string      `json:"name"`
	Role       config.Role `json:"role"`
	Address    netip.Addr  `json:"address"`
	Port       int         `json:"port"`
	User       string      `json:"user"`
	Key        string      `json:"key"`         // path of the private key
	KnownHosts string      `json:"known_hosts"` // path of the file with the keys of the nodes' SSH servers
}

// Access is a lab that was lent.
type Access struct {
	host *host.Host
	dir  string
	env  []string
}

// Lend writes the files into a new directory, which Close removes. Everything in it is for its owner alone.
func Lend(l state.Lab, h *host.Host, kubeconfig, description []byte, dir string) (*Access, error) {
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return nil, err
	}
	a := &Access{host: h, dir: dir}
	all, known, err := a.logins(l)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	key, _, err := l.KeyPair(session.RootKey)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	logins, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	for _, f := range []struct {
		name, variable string
		content        []byte
	}{
		{"key", "", key}, {"known_hosts", "", known}, {"nodes.json", NodesVariable, logins}, {"ssh_config", SSHVariable, sshConfig(all)},
		{"kubeconfig", "KUBECONFIG", kubeconfig}, {"cluster.yaml", ClusterVariable, description},
	} {
		path := filepath.Join(dir, f.name)
		if err := atomicfile.Write(path, atomicfile.Private, f.content); err != nil {
			return nil, errors.Join(err, a.Close())
		}
		if f.variable != "" {
			a.env = append(a.env, f.variable+"="+path)
		}
	}
	return a, nil
}

// logins are those of all nodes, and what ssh knows its hosts by.
func (a *Access) logins(l state.Lab) (all []Login, known []byte, err error) {
	for _, n := range l.Cluster.Members() {
		_, hostKey, err := l.KeyPair(session.HostKey(n.Name))
		if err != nil {
			return nil, nil, err
		}
		known = fmt.Appendf(known, "%s %s\n", n.IP, hostKey)
		all = append(all, Login{
			Name: n.Name, Role: n.Role, Address: n.IP, Port: 22, User: "root",
			Key: filepath.Join(a.dir, "key"), KnownHosts: filepath.Join(a.dir, "known_hosts"),
		})
	}
	return all, known, nil
}

// sshConfig is ssh_config(5) with the nodes' names.
func sshConfig(all []Login) (config []byte) {
	for _, n := range all {
		config = fmt.Appendf(config, "Host %s\n  HostName %s\n  Port %d\n  User %s\n  IdentityFile %q\n  UserKnownHostsFile %q\n  IdentitiesOnly yes\n"+
			"  StrictHostKeyChecking yes\n  BatchMode yes\n  ConnectTimeout 5\n", n.Name, n.Address, n.Port, n.User, n.Key, n.KnownHosts)
	}
	return config
}

// Close removes the files.
func (a *Access) Close() error { return os.RemoveAll(a.dir) }

// Run runs the shell command, in the network of the machines, to its end or its budget's, and returns its standard output. The error says how it
// ended, and the last line that it wrote.
func (a *Access) Run(ctx context.Context, shell, phase string, budget time.Duration) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, budget, fmt.Errorf("its time is over after %s", budget))
	defer cancel()
	out, err := command.Command{
		Argv: a.host.Enter([]string{"sh", "-c", shell}),
		Env:  append([]string{PhaseVariable + "=" + phase, fmt.Sprintf("%s=%d", SecondsVariable, int(budget.Seconds()))}, a.env...),
	}.Run(ctx)
	if failed, ok := errors.AsType[*command.Error](err); ok {
		err = failed.Cause
		if said := lastLine(failed.Output); said != "" {
			err = fmt.Errorf("%w: %s", err, said)
		}
	}
	return out, err
}

// lastLine is the last line of an output that is not empty.
func lastLine(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
