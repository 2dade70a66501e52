package bringup

import (
	"context"
	"slices"

	"k8slab/config"
	"k8slab/lab/addon"
	"k8slab/lab/health"
	"k8slab/lab/join"
	"k8slab/lab/machine"
	"k8slab/lab/session"
)

// present is what of the plan is already done in the lab.
type present struct {
	network  bool
	machines map[string]machine.State
	facts    map[string]join.Facts // of nodes that answered
	plugin   bool
	addons   bool
	healthy  bool
}

func (s present) runs(n config.Node) bool { return s.machines[n.Name] == machine.Running }

// has tells whether the node has a node's programs: labnode answered.
func (s present) has(n config.Node) bool {
	_, answers := s.facts[n.Name]
	return answers
}

// joined tells whether kubeadm has finished on one of the nodes.
func (s present) joined(nodes ...config.Node) bool {
	return slices.ContainsFunc(nodes, func(n config.Node) bool { return s.facts[n.Name].Joined })
}

// made tells whether every machine exists. Then up needs no image.
func (s present) made(c *config.Cluster) bool {
	return !slices.ContainsFunc(c.Members(), func(n config.Node) bool {
		state := s.machines[n.Name]
		return state == "" || state == machine.Absent
	})
}

// Plan is what up would do, and what of it is already done in the opened lab. With an error it returns the steps all the same.
func Plan(ctx context.Context, s *session.Session) ([]Step, error) {
	steps := NewPlan(s.Lab)
	p, err := readPresent(ctx, s)
	for i, step := range steps {
		steps[i].Done = step.done != nil && step.done(p)
	}
	return steps, err
}

func readPresent(ctx context.Context, s *session.Session) (p present, err error) {
	p.network = true // of machines that exist already
	if s.Libvirt != nil {
		if p.network, err = s.Libvirt.NetworkActive(ctx); err != nil {
			return p, err
		}
	}
	var running []config.Node
	p.machines = map[string]machine.State{}
	for _, n := range s.Cluster.Members() {
		state, err := s.Machines.State(ctx, n.Name)
		if err != nil {
			return p, err
		}
		if p.machines[n.Name] = state; state == machine.Running {
			running = append(running, n)
		}
	}
	if p.facts, err = s.Facts(ctx, running); err != nil || !p.joined(s.Cluster.ControlPlanes()...) {
		return p, err
	}
	v, err := s.AnyAdmin(ctx)
	if err != nil {
		return p, err
	}
	defer v.Close()
	manifest, err := health.Manifests(s)
	if err != nil {
		return p, err
	}
	if p.plugin, err = v.Kube.UpToDate(ctx, manifest); err != nil {
		return p, err
	}
	addons, err := addon.Wanted(s)
	if err != nil {
		return p, err
	}
	p.addons = addon.Ready(ctx, v, addons) == nil
	p.healthy = len(s.Leaving()) == 0 && p.made(s.Cluster) && health.Healthy(ctx, s) == nil
	for _, n := range s.Leaving() { // what is there by its name is none of the lab's that up leaves
		delete(p.machines, n.Name)
		delete(p.facts, n.Name)
	}
	return p, nil
}
