package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8slab/config"
	"k8slab/lab/etcd"
	"k8slab/lab/join"
	"k8slab/lab/symptom"
)

// Repaired is one thing that Repair found and what became of it.
type Repaired struct {
	Node     string `json:"node,omitempty"`
	Symptom  string `json:"symptom"`
	Evidence string `json:"evidence"`
	Did      string `json:"did,omitempty"`  // what was done, or with dryRun would be
	Left     string `json:"left,omitempty"` // why it was left, with the next step
}

// Repair makes the repairs that are safe, and says of everything else why it is left: on each node what `labnode mend` repairs, a Node that
// was deleted under a kubelet that lives, learners that no join will promote, nodes that are in no cluster, manifests that make a static pod
// end again and again, the pod network. What it leaves a diagnosis names. It starts no machine.
func (l *Lab) Repair(ctx context.Context, dryRun bool) (found []Repaired, err error) {
	err = l.onCluster(ctx, "labctl repair", func(c *forming) error {
		c.dryRun = dryRun
		r := &repairing{forming: c}
		err := errors.Join(r.nodes(ctx), r.members(ctx), r.outside(ctx), r.manifests(ctx), r.network(ctx), r.addresses(ctx))
		r.rest(ctx)
		found = r.found
		return err
	})
	return found, err
}

type repairing struct {
	*forming
	found []Repaired
}

// add keeps a finding and shows it as an event of its own.
func (r *repairing) add(f Repaired) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = append(r.found, f)
	step := r.lab.events.Start(f.Node, "repair", 0)
	text := f.Symptom + ": " + f.Evidence
	switch {
	case f.Left != "":
		text += "; left: " + f.Left
	case r.dryRun:
		text += "; would: " + f.Did
	default:
		text += "; did: " + f.Did
	}
	step.EndWith(text)
}

// nodes mends what each node can mend itself.
func (r *repairing) nodes(ctx context.Context) error {
	return together(r.lab.cluster.Members(), func(n config.Node) error {
		if f := r.fact(n); !f.Joined || f.Running() {
			return nil
		}
		for _, c := range r.lab.mend(ctx, n.Name, r.dryRun) {
			f := Repaired{Node: n.Name, Symptom: string(c.Symptom), Evidence: c.Evidence, Did: c.Fixed}
			switch {
			case c.Result == join.Fixable:
				f.Did = c.Hint
			case c.Result == join.Blocked:
				f.Left = c.Hint
			case c.Fixed == "":
				continue
			}
			r.add(f)
		}
		return nil
	})
}

// members removes the learners that no join will promote.
func (r *repairing) members(ctx context.Context) error {
	if r.dryRun {
		machines, err := r.lab.etcdMachines(ctx)
		if err != nil {
			return err
		}
		statuses, err := r.view.etcd.Status(ctx)
		for _, v := range etcd.Judge(statuses, machines, "") {
			if v.Action == etcd.Remove {
				r.addMember(v)
			}
		}
		return err
	}
	removed, _, err := r.lab.cleanMembers(ctx, r.view, "")
	for _, v := range removed {
		r.addMember(v)
	}
	return err
}

func (r *repairing) addMember(v etcd.Verdict) {
	r.add(Repaired{Node: v.Machine, Symptom: string(symptom.EtcdStaleMember), Evidence: fmt.Sprintf("%s: %s", v.Member, v.Reason), Did: "remove it from etcd"})
}

// outside registers again the nodes whose Node was deleted, and joins those that are in no cluster. A join that goes on comes to its end
// first; what it may wait for is repaired by now.
func (r *repairing) outside(ctx context.Context) error {
	if !r.dryRun {
		if err := r.finishRunning(ctx); err != nil {
			return err
		}
	}
	nodes, err := r.view.kube.Nodes(ctx)
	if err != nil {
		return err
	}
	for _, n := range r.lab.cluster.Members() {
		switch f, answers := r.facts[n.Name]; {
		case !answers:
			r.add(Repaired{Node: n.Name, Symptom: "node-unreachable", Evidence: "it does not answer over SSH", Left: "labctl up starts its machine"})
		case f.Running():
			r.add(Repaired{Node: n.Name, Symptom: "kubeadm-running", Evidence: "kubeadm is at work on it", Left: "labctl join " + n.Name + " follows it to its end"})
		case f.Joined && findNode(nodes, n.Name) == nil:
			r.add(Repaired{Node: n.Name, Symptom: "node-name-mismatch", Evidence: "its kubelet runs and its Node was deleted", Did: "restart kubelet, which registers it"})
		case !f.Joined:
			r.add(Repaired{Node: n.Name, Symptom: "kubelet-config-missing", Evidence: "it is in no cluster", Did: "labctl join " + n.Name})
		}
	}
	if r.dryRun {
		return nil
	}
	return r.join(ctx)
}

// has tells whether something was found on the node.
func (r *repairing) has(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.found, func(f Repaired) bool { return f.Node == name })
}

// RepairWatch repairs again and again until ctx ends; every is the pause between two looks.
func (l *Lab) RepairWatch(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if _, err := l.Repair(ctx, false); err != nil && ctx.Err() == nil {
			step := l.events.Start("", "repair", 0)
			step.EndWith(err.Error())
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
