package health

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"k8slab/config"
	"k8slab/lab/diagnose"
	"k8slab/lab/diagnose/fact"
	"k8slab/lab/etcd"
	"k8slab/lab/kube"
	"k8slab/lab/machine"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// StatusBudget bounds a status of so many nodes, however broken the lab is. They share one computer's processors: while a compiler ran on each
// of two, 15 s were too short for 20 nodes in 6 of 20 looks.
func StatusBudget(nodes int) time.Duration { return 15*time.Second + time.Duration(nodes)*time.Second }

// StatusSchema is the version of a status as JSON: docs/schema/status.v1.json describes it.
const StatusSchema = "k8slab.status/v1"

// Status is what a lab looks like now.
type Status struct {
	Schema   string             `json:"schema"`
	Name     string             `json:"name"`
	Healthy  bool               `json:"healthy"`
	Libvirt  string             `json:"libvirt,omitempty"` // the daemon of the machines; "" while there are none
	Nodes    []NodeStatus       `json:"nodes"`
	Problems []string           `json:"problems,omitempty"`
	Changed  []state.Difference `json:"changed,omitempty"`  // between cluster.yaml and what the lab was made with
	Warnings []string           `json:"warnings,omitempty"` // of things that do not make the lab unhealthy
}

// NodeStatus is one node's part of it.
type NodeStatus struct {
	Name    string        `json:"name"`
	Role    config.Role   `json:"role"`
	IP      string        `json:"ip"`
	Machine machine.State `json:"machine"`
	Ready   bool          `json:"ready"`
	Etcd    string        `json:"etcd"`            // voter, learner or none
	Started bool          `json:"started"`         // its etcd member has started
	Maker   machine.Maker `json:"maker,omitempty"` // "vagrant" if it made the machine
	Note    string        `json:"note,omitempty"`
}

// Closed is the status of a closed lab: no machine was asked.
func Closed(l state.Lab) Status {
	st := Status{Schema: StatusSchema, Name: l.Cluster.Name, Changed: l.Differences}
	for _, n := range l.Cluster.Nodes {
		one := NodeStatus{Name: n.Name, Role: n.Role, IP: n.IP.String(), Machine: machine.Absent, Etcd: "none"}
		switch _, described := l.Described.Node(n.Name); {
		case !described:
			one.Note = "not in cluster.yaml"
		case n.Onboard:
			one.Note = "to be onboarded later"
		}
		st.Nodes = append(st.Nodes, one)
	}
	return st
}

// ReadStatus reads the lab's status, and diagnoses it: a lab is healthy if no finding fails. It does not wait for another labctl. With an
// error it returns what it found before.
func ReadStatus(ctx context.Context, s *session.Session) (Status, error) {
	st := Closed(s.Lab)
	if !s.Cluster.OverSSH() {
		st.Libvirt = s.URI + " of this computer"
	}
	if s.Host != nil && s.Host.Own {
		st.Libvirt = s.URI + " of the lab's own"
	}
	machines, err := s.Machines.List(ctx)
	if err != nil {
		return st, err
	}
	facts := diagnose.Collect(ctx, Sources(s, DiagnoseOptions{Brief: true}))
	if err := ctx.Err(); err != nil {
		return st, fmt.Errorf("status of %s: %w", s.Cluster.Name, context.Cause(ctx))
	}
	report, err := diagnose.NewReport(facts)
	if err != nil {
		return st, err
	}
	for i := range st.Nodes {
		fill(s, &st.Nodes[i], facts, machines)
	}
	st.Warnings = imageWarnings(facts)
	st.Problems, st.Healthy = report.Problems(), report.Healthy
	return st, nil
}

// fill adds what was found of a node.
func fill(s *session.Session, one *NodeStatus, facts fact.Facts, machines []machine.Machine) {
	if i := slices.IndexFunc(machines, func(m machine.Machine) bool { return m.Node == one.Name }); i >= 0 {
		if one.Machine = machines[i].State; machines[i].Maker != machine.Labctl {
			one.Maker = machines[i].Maker
		}
	}
	if m := facts.Machine(one.Name); s.Cluster.OverSSH() && m != nil && m.SSH != "" {
		one.Machine = machine.Silent
	}
	if k := session.FindNode(facts.API.Nodes, one.Name); k != nil {
		one.Ready = k.Ready
	}
	n, _ := s.Cluster.Node(one.Name)
	for _, m := range facts.Etcd.Members {
		if !session.OwnsPeer(n, etcd.Member{PeerURLs: m.PeerURLs}) {
			continue
		}
		one.Etcd, one.Started = "voter", m.Started
		if m.Learner {
			one.Etcd = "learner"
		}
	}
}

// mostWarnings is how many images status warns of.
const mostWarnings = 5

// imageWarnings warns of users' pods that cannot get an image, once for each image.
func imageWarnings(f fact.Facts) []string {
	var all []string
	waits := kube.ImageWaits(slices.DeleteFunc(slices.Clone(f.API.Pods), diagnose.Own))
	for i, w := range waits {
		if i == mostWarnings && len(waits) > mostWarnings+1 {
			return append(all, fmt.Sprintf("pods wait for %d more images; next: labctl diagnose", len(waits)-i))
		}
		why, next := ": nodes of this lab have no uplink", "labctl image load FILE.tar"
		if w.Always {
			next += ", and another imagePullPolicy"
		}
		if f.Uplink || !w.Cause.Stranded() {
			why, next = "", "labctl diagnose"
		}
		all = append(all, w.String()+why+"; next: "+next)
	}
	return all
}

// Entry is one lab of this user in a list.
type Entry struct {
	Name       string    `json:"name"`
	Kubernetes string    `json:"kubernetes,omitempty"` // version; "" while no machine was made
	URI        string    `json:"uri,omitempty"`
	Network    string    `json:"network,omitempty"`
	Machines   int       `json:"machines"` // that were made
	Running    int       `json:"running"`  // machines that run
	Made       time.Time `json:"made"`
	Problem    string    `json:"problem,omitempty"` // why Running is unknown
}

// List lists this user's labs by name. It gives each lab a few seconds to answer.
func List(ctx context.Context) ([]Entry, error) {
	names, err := state.Names()
	if err != nil {
		return nil, err
	}
	all := []Entry{}
	for _, name := range names {
		e, err := entryOf(ctx, name)
		if err != nil {
			e.Problem = err.Error()
		}
		all = append(all, e)
	}
	return all, nil
}

func entryOf(ctx context.Context, name string) (Entry, error) {
	e := Entry{Name: name}
	d, err := state.Open(name)
	if err != nil {
		return e, err
	}
	if info, err := os.Stat(d.Path("id")); err == nil {
		e.Made = info.ModTime().UTC().Truncate(time.Second)
	}
	made, err := d.Made()
	if err != nil || made == nil {
		return e, err
	}
	e.Kubernetes, e.URI, e.Network = made.Kubernetes.Version, made.Libvirt.URI, made.Network.CIDR.String()
	l, err := state.Read(made)
	if err != nil {
		return e, err
	}
	e.Machines = len(l.Cluster.Members())
	if l.Cluster.OverSSH() { // whether they run is a question for status
		e.URI, e.Network, e.Running = "ssh", "", e.Machines
		return e, nil
	}
	h, err := session.Connect(l)
	if errors.Is(err, fs.ErrNotExist) {
		return e, state.ErrNotUp
	}
	if err != nil {
		return e, err
	}
	open, err := session.Open(l, h, nil, session.Options{})
	if err != nil {
		return e, err
	}
	defer open.Close()
	ctx, cancel := open.Within(ctx, 3*time.Second)
	defer cancel()
	machines, err := open.Machines.List(ctx)
	for _, m := range machines {
		if m.State == machine.Running {
			e.Running++
		}
	}
	return e, err
}
