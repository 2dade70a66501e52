package lab

import (
	"context"
	"errors"
	"slices"

	"k8slab/config"
	"k8slab/lab/join"
	"k8slab/lab/machine"
)

// present is what of the plan's work a look at the lab finds done.
type present struct {
	network  bool
	machines map[string]machine.State
	facts    map[string]join.Facts // of nodes that answered
	plugin   bool
	addons   bool
	healthy  bool
}

func (s present) runs(n config.Node) bool { return s.machines[n.Name] == machine.Running }

// has tells whether the node has the programs that a node needs.
func (s present) has(n config.Node) bool {
	_, answers := s.facts[n.Name]
	return answers
}

// joined tells whether kubeadm has finished on one of the nodes.
func (s present) joined(nodes ...config.Node) bool {
	return slices.ContainsFunc(nodes, func(n config.Node) bool { return s.facts[n.Name].Joined })
}

// made tells whether every machine is there: then up needs no image.
func (s present) made(c *config.Cluster) bool {
	return !slices.ContainsFunc(c.Members(), func(n config.Node) bool {
		state := s.machines[n.Name]
		return state == "" || state == machine.Absent
	})
}

// Plan is what up would do, and what of it is done in the lab that exists. It changes nothing. With an error, the steps are there all the same.
func (l *Lab) Plan(ctx context.Context) ([]Step, error) {
	steps := NewPlan(l.cluster)
	ctx, cancel := l.within(ctx, statusBudget)
	defer cancel()
	s, err := l.look(ctx)
	for i, step := range steps {
		steps[i].Done = step.done != nil && step.done(s)
	}
	return steps, err
}

func (l *Lab) look(ctx context.Context) (s present, err error) {
	if err := l.open(); errors.Is(err, ErrNotUp) {
		return s, nil
	} else if err != nil {
		return s, err
	}
	if s.network, err = l.machines.NetworkActive(ctx); err != nil {
		return s, err
	}
	var running []config.Node
	s.machines = map[string]machine.State{}
	for _, n := range l.cluster.Members() {
		state, err := l.machines.State(ctx, n.Name)
		if err != nil {
			return s, err
		}
		if s.machines[n.Name] = state; state == machine.Running {
			running = append(running, n)
		}
	}
	if s.facts, err = l.facts(ctx, running); err != nil || !s.joined(l.cluster.ControlPlanes()...) {
		return s, err
	}
	v, err := l.anyView(ctx)
	if err != nil {
		return s, err
	}
	defer v.close()
	manifest, err := l.manifests()
	if err != nil {
		return s, err
	}
	if s.plugin, err = v.kube.UpToDate(ctx, manifest); err != nil {
		return s, err
	}
	addons, err := l.addons()
	if err != nil {
		return s, err
	}
	s.addons, s.healthy = v.addonsReady(ctx, addons) == nil, len(l.healthy(ctx, v)) == 0
	return s, nil
}
