package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8slab/config"
	"k8slab/lab/diagnose"
	"k8slab/lab/etcd"
	"k8slab/lab/kube"
	"k8slab/lab/machine"
)

// statusBudget bounds a look at a lab, however broken it is.
const statusBudget = 15 * time.Second

// Status is what a lab looks like now.
type Status struct {
	Name     string       `json:"name"`
	Healthy  bool         `json:"healthy"`
	Libvirt  string       `json:"libvirt,omitempty"` // which has the machines; "" while there are none
	Nodes    []NodeStatus `json:"nodes"`
	Problems []string     `json:"problems,omitempty"`
	Changed  []Difference `json:"changed,omitempty"`  // what cluster.yaml says and the lab was made without
	Warnings []string     `json:"warnings,omitempty"` // what a user should know of a lab that is healthy all the same
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
	Maker   machine.Maker `json:"maker,omitempty"` // vagrant, if it made the machine
	Note    string        `json:"note,omitempty"`
}

// Status looks at the lab; it changes nothing and does not wait for another labctl.
func (l *Lab) Status(ctx context.Context) (Status, error) {
	ctx, cancel := l.within(ctx, statusBudget)
	defer cancel()
	s := Status{Name: l.cluster.Name, Changed: l.differences}
	for _, n := range l.cluster.Nodes {
		st := NodeStatus{Name: n.Name, Role: n.Role, IP: n.IP.String(), Machine: machine.Absent, Etcd: "none"}
		switch _, described := l.described.Node(n.Name); {
		case !described:
			st.Note = "not in cluster.yaml"
		case n.Onboard:
			st.Note = "to be onboarded later"
		}
		s.Nodes = append(s.Nodes, st)
	}
	if err := l.open(); errors.Is(err, ErrNotUp) {
		s.Problems = []string{err.Error()}
		return s, nil
	} else if err != nil {
		return s, err
	}
	s.Libvirt = l.uri + " of this computer"
	if l.host.Own {
		s.Libvirt = l.uri + " of the lab's own"
	}
	for i, n := range s.Nodes {
		state, err := l.machines.State(ctx, n.Name)
		if err != nil {
			return s, err
		}
		s.Nodes[i].Machine = state
	}
	if err := l.makers(ctx, s.Nodes); err != nil {
		return s, err
	}
	v, err := l.anyView(ctx)
	if err != nil {
		s.Problems = append(s.Problems, err.Error())
		return s, nil
	}
	defer v.close()
	l.fill(ctx, v, &s)
	for _, err := range l.healthy(ctx, v) {
		s.Problems = append(s.Problems, err.Error())
	}
	s.Healthy = len(s.Problems) == 0
	return s, nil
}

// makers adds which machines labctl did not make.
func (l *Lab) makers(ctx context.Context, nodes []NodeStatus) error {
	machines, err := l.machines.List(ctx)
	for _, m := range machines {
		if i := slices.IndexFunc(nodes, func(n NodeStatus) bool { return n.Name == m.Node }); i >= 0 && m.Maker != machine.Labctl {
			nodes[i].Maker = m.Maker
		}
	}
	return err
}

// fill adds what the API server and etcd say of each node. What does not answer is a problem that healthy reports.
func (l *Lab) fill(ctx context.Context, v *view, s *Status) {
	var nodes []kube.Node
	var members []etcd.Member
	var pods []kube.Pod
	var wg sync.WaitGroup
	wg.Go(func() { nodes, _ = v.kube.Nodes(ctx) })
	wg.Go(func() { members, _ = v.etcd.Members(ctx) })
	wg.Go(func() { pods, _ = v.kube.Pods(ctx, "", "") })
	wg.Wait()
	s.Warnings = imageWarnings(pods)
	for i := range s.Nodes {
		st := &s.Nodes[i]
		n, _ := l.cluster.Node(st.Name)
		if k := slices.IndexFunc(nodes, func(k kube.Node) bool { return k.Name == st.Name }); k >= 0 {
			st.Ready = nodes[k].Ready
		}
		if m := slices.IndexFunc(members, func(m etcd.Member) bool { return ownsPeer(n, m) }); m >= 0 {
			st.Etcd, st.Started = "voter", members[m].Started
			if members[m].Learner {
				st.Etcd = "learner"
			}
		}
	}
}

// mostWarnings is how many images status warns of.
const mostWarnings = 5

// imageWarnings warns of users' pods that cannot get an image, once for each image.
func imageWarnings(pods []kube.Pod) []string {
	var all []string
	waits := kube.ImageWaits(slices.DeleteFunc(slices.Clone(pods), diagnose.Own))
	for i, w := range waits {
		if i == mostWarnings && len(waits) > mostWarnings+1 {
			return append(all, fmt.Sprintf("pods wait for %d more images; next: labctl diagnose", len(waits)-i))
		}
		next := "labctl image load FILE.tar"
		if w.Always {
			next += ", and another imagePullPolicy"
		}
		all = append(all, w.String()+": nodes of this lab have no uplink; next: "+next)
	}
	return all
}

// anyView opens the cluster through the first control plane that answers and has joined.
func (l *Lab) anyView(ctx context.Context) (*view, error) {
	var errs []error
	cps := l.restoredFirst(l.cluster.ControlPlanes())
	for _, n := range cps {
		one, cancel := l.within(ctx, 4*time.Second)
		v, err := l.openView(one, n, cps)
		cancel()
		if err == nil {
			return v, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}
