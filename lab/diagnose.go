package lab

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/diagnose"
	"k8slab/lab/diagnose/fact"
	"k8slab/lab/kube"
)

// DiagnoseOptions says what to look at.
type DiagnoseOptions struct {
	Nodes  []string      // none is every node of `labctl up`
	Since  time.Duration // how far back journals are read; 0 is from the last boot on
	Bundle string        // file to keep the facts in, "" for none
}

// Diagnose looks at the lab and says what is wrong with it. It changes nothing, does not wait for another labctl, and takes what does not
// answer for a fact.
func (l *Lab) Diagnose(ctx context.Context, o DiagnoseOptions) (diagnose.Report, error) {
	sources, err := l.sources(o)
	if err != nil {
		return diagnose.Report{}, err
	}
	facts := diagnose.Collect(ctx, sources)
	if err := ctx.Err(); err != nil {
		return diagnose.Report{}, fmt.Errorf("diagnose %s: %w", l.cluster.Name, context.Cause(ctx))
	}
	report, err := diagnose.NewReport(facts)
	if err == nil && o.Bundle != "" {
		err = diagnose.WriteBundle(o.Bundle, facts)
	}
	return report, err
}

func (l *Lab) sources(o DiagnoseOptions) (diagnose.Sources, error) {
	members := l.cluster.Members()
	for _, name := range o.Nodes {
		if !slices.ContainsFunc(members, func(n config.Node) bool { return n.Name == name }) {
			return diagnose.Sources{}, l.unknownNode(name)
		}
	}
	if err := l.open(); err != nil {
		return diagnose.Sources{}, err
	}
	return l.sourcesOf(o), nil
}

// sourcesOf are where the facts of a lab that is open come from.
func (l *Lab) sourcesOf(o DiagnoseOptions) diagnose.Sources {
	members := l.cluster.Members()
	s := diagnose.Sources{Lab: l.cluster.Name, Labnode: labnode, Endpoint: l.endpoint(), Since: o.Since, Open: l.openThrough}
	s.Patience, s.AtOnce = l.Patience(), runtime.NumCPU()
	if s.Patience > 1 {
		s.AtOnce = 1 // an emulated machine keeps a processor busy by itself
	}
	for _, n := range members {
		s.Peers = append(s.Peers, fact.Peer{Name: n.Name, Role: string(n.Role), IP: n.IP.String()})
		if len(o.Nodes) > 0 && !slices.Contains(o.Nodes, n.Name) {
			continue
		}
		s.Machines = append(s.Machines, diagnose.Machine{
			Name: n.Name, Role: string(n.Role), IP: n.IP.String(),
			State: func(ctx context.Context) (string, error) {
				state, err := l.machines.State(ctx, n.Name)
				return string(state), err
			},
			Read:    l.nodes[n.Name].Read,
			Console: func() string { return l.console(n.Name) },
		})
	}
	return s
}

// openThrough asks the cluster through one control plane and its own API server, so that neither the virtual IP nor another machine that is
// dead is on the way.
func (l *Lab) openThrough(ctx context.Context, name string) (diagnose.Cluster, error) {
	n, _ := l.cluster.Node(name)
	others := slices.DeleteFunc(l.cluster.ControlPlanes(), func(o config.Node) bool { return o.Name == name })
	v, err := l.openView(ctx, n, append([]config.Node{n}, others...))
	if err != nil {
		return diagnose.Cluster{}, err
	}
	v.kube.Close()
	own, err := kube.WithServer(v.config, "https://"+net.JoinHostPort(n.IP.String(), "6443"), "")
	if err != nil {
		_ = v.etcd.Close()
		return diagnose.Cluster{}, err
	}
	k, err := kube.New(own, l.dialCluster, l.mutated)
	if err != nil {
		_ = v.etcd.Close()
		return diagnose.Cluster{}, err
	}
	return diagnose.Cluster{Kube: k, Etcd: v.etcd}, nil
}

// consoleEnd is how much of a console's end is looked at, in bytes.
const consoleEnd = 8 << 10

// console is the end of what a virtual machine wrote to its console; a container has none.
func (l *Lab) console(name string) string {
	ctx, cancel := context.WithTimeoutCause(context.Background(), daemonBudget, errDaemonSilent)
	defer cancel()
	text, _ := l.machines.Console(ctx, name, consoleEnd) // what could be read is better than nothing
	return strings.ToValidUTF8(text, "?")
}
