package health

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/diagnose"
	"k8slab/lab/diagnose/fact"
	"k8slab/lab/diagnose/siterule"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// DiagnoseOptions of a diagnosis.
type DiagnoseOptions struct {
	Nodes  []string      // empty for all members
	Since  time.Duration // how far back journals are read; 0 for since the last boot
	Bundle string        // file to keep the facts in, "" for none
	Rules  *siterule.Set // the site's own, nil for none
	Brief  bool          // read no journals and logs: they say why something fails, never whether
}

// Check refuses nodes that the lab does not have.
func (o DiagnoseOptions) Check(l state.Lab) error {
	for _, name := range o.Nodes {
		if _, err := l.Member(name); err != nil {
			return err
		}
	}
	return nil
}

// Healthy says what is wrong with the lab, nil for nothing. Whoever asks whether a lab is healthy asks this.
func Healthy(ctx context.Context, s *session.Session) error {
	r, err := Diagnose(ctx, s, DiagnoseOptions{Brief: true})
	if err == nil && !r.Healthy {
		err = errors.New(strings.Join(r.Problems(), "\n"))
	}
	return err
}

// Verify proves that a cluster which labctl did not make is healthy.
func Verify(ctx context.Context, s *session.Session) error {
	step := s.Events.Start("", "proof", 0)
	err := Healthy(ctx, s)
	if err != nil {
		err = fmt.Errorf("%w\nlabctl up verifies a cluster that exists; next: labctl diagnose, labctl repair, or labctl join NODE", err)
	}
	return step.End(err)
}

// Diagnose collects the lab's facts, among them whether the conditions of a healthy cluster hold, and says what is wrong. It changes
// nothing and does not wait for another labctl. That something does not answer is also a fact.
func Diagnose(ctx context.Context, s *session.Session, o DiagnoseOptions) (diagnose.Report, error) {
	facts := diagnose.Collect(ctx, Sources(s, o))
	if err := ctx.Err(); err != nil {
		return diagnose.Report{}, fmt.Errorf("diagnose %s: %w", s.Cluster.Name, context.Cause(ctx))
	}
	report, err := diagnose.NewReportWith(o.Rules, facts)
	if err == nil && o.Bundle != "" {
		err = diagnose.WriteBundle(o.Bundle, facts)
	}
	return report, err
}

// Sources are where the diagnosis gets the facts of an opened lab from.
func Sources(s *session.Session, o DiagnoseOptions) diagnose.Sources {
	want := s.Documents()
	from := diagnose.Sources{
		Want: &want, Lab: s.Cluster.Name, Labnode: session.LabnodePath, Endpoint: s.Endpoint(), Since: o.Since, Patience: s.TimeScale(), AtOnce: runtime.NumCPU(),
		Existing: s.Cluster.OverSSH(), Uplink: s.Cluster.OverSSH() || session.HasUplink(s.Lab),
		Open: func(ctx context.Context, name string) (diagnose.Cluster, error) { return openThrough(ctx, s, name) },
	}
	if begun, err := s.Upgrading(); err != nil {
		from.Upgrade = err.Error()
	} else if begun != nil {
		from.Upgrade = begun.String()
	}
	from.Recent = o.Bundle == "" && o.Since == 0
	if o.Brief {
		from.Since = fact.NoTexts
	}
	if len(o.Nodes) == 0 {
		from.Prove = func(ctx context.Context, c diagnose.Cluster) []fact.Organ { return measure(ctx, s, c) }
	}
	if s.Cluster.OverSSH() {
		from.AtOnce = manyAtOnce
	}
	if from.Patience > 1 {
		from.AtOnce = 1 // an emulated machine keeps a processor busy by itself
	}
	for _, n := range s.Cluster.Members() {
		from.Peers = append(from.Peers, fact.Peer{Name: n.Name, Role: string(n.Role), IP: n.IP.String()})
		if len(o.Nodes) > 0 && !slices.Contains(o.Nodes, n.Name) {
			continue
		}
		from.Machines = append(from.Machines, diagnose.Machine{
			Name: n.Name, Role: string(n.Role), IP: n.IP.String(),
			State: func(ctx context.Context) (string, error) {
				state, err := s.Machines.State(ctx, n.Name)
				return string(state), err
			},
			Read:    s.Nodes[n.Name].Read,
			Bring:   func(ctx context.Context) error { return s.Bring(ctx, n.Name) },
			Console: func() string { return s.Console(n.Name) },
		})
	}
	return from
}

// manyAtOnce is how many machines of their own may collect at the same time: what they say, and labnode on its way to them, is in this
// computer's memory.
const manyAtOnce = 64

// openThrough opens the cluster through one control plane and its own API server, so that the answer does not depend on the virtual IP or
// on another machine.
func openThrough(ctx context.Context, s *session.Session, name string) (diagnose.Cluster, error) {
	n, _ := s.Cluster.Node(name)
	others := slices.DeleteFunc(s.Cluster.ControlPlanes(), func(o config.Node) bool { return o.Name == name })
	v, err := s.OpenAdmin(ctx, n, append([]config.Node{n}, others...))
	if err != nil {
		return diagnose.Cluster{}, err
	}
	v.Kube.Close()
	k, err := s.OwnAPI(v.Config, n)
	if err != nil {
		_ = v.Etcd.Close()
		return diagnose.Cluster{}, err
	}
	return diagnose.Cluster{Kube: k, Etcd: v.Etcd}, nil
}
