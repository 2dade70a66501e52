// Package repair makes the repairs of a cluster that are safe, from cause to effect, and says what it leaves to a person.
package repair

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8slab/config"
	"k8slab/lab/cluster"
	"k8slab/lab/etcd"
	"k8slab/lab/etcdadmin"
	"k8slab/lab/event"
	"k8slab/lab/join"
	"k8slab/lab/session"
	"k8slab/lab/symptom"
)

// Repaired is one thing that Run found. Exactly one of Did, Would and Left is set.
type Repaired struct {
	Node     string `json:"node,omitempty"` // "" for the whole cluster
	Symptom  string `json:"symptom"`
	Evidence string `json:"evidence"`
	Did      string `json:"did,omitempty"`   // what was done
	Would    string `json:"would,omitempty"` // what would be done, in a dry run
	Left     string `json:"left,omitempty"`  // what a person has to do
}

// Run makes the repairs that are safe: what `labnode repair` repairs on each node, learners that no join will promote, Nodes that were
// deleted while their kubelet runs, nodes that are in no cluster, manifests that make a static pod crash, and the pod network. For what
// needs a person it returns the diagnosis' findings. It starts no machine. It returns when the repairs have taken effect: the diagnosis no
// longer finds their causes, and the proof holds, unless something is left.
func Run(ctx context.Context, c *cluster.Run) ([]Repaired, error) {
	r := &repairRun{Run: c, step: c.Events.Start("", "repair", 0)}
	err := r.all(ctx)
	if err == nil {
		err = r.verdict(ctx)
	}
	return r.found, r.step.End(err)
}

type repairRun struct {
	*cluster.Run
	step   *event.Step
	before []symptom.Finding // of the diagnosis before the first repair
	waited bool              // it waited for a running kubeadm
	mu     sync.Mutex
	found  []Repaired
}

// all makes the repairs, from cause to effect. Each is tried, even if one before it failed.
func (r *repairRun) all(ctx context.Context) error {
	r.step.Progress("diagnose")
	r.before = r.diagnose(ctx)
	var errs []error
	for _, stage := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"files of the image", r.files},
		{"what each node can repair itself", r.nodes},
		{"container images of add-ons", r.images},
		{"etcd members", r.members},
		{"nodes that are in no cluster", r.outside},
		{"static pods", r.manifests},
		{"pod network", r.network},
		{"addresses of pods", r.addresses},
	} {
		r.step.Progress("%s", stage.name)
		errs = append(errs, stage.do(ctx))
	}
	return errors.Join(errs...)
}

// add keeps a finding and shows it.
func (r *repairRun) add(f Repaired) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = append(r.found, f)
	r.step.Progress("%s", f)
}

// String is the finding in one line.
func (f Repaired) String() string {
	text := f.Symptom
	if f.Node != "" {
		text = f.Node + ": " + text
	}
	text += ": " + f.Evidence
	switch {
	case f.Left != "":
		return text + "; not repaired: " + f.Left
	case f.Would != "":
		return text + "; would: " + f.Would
	}
	return text + "; repaired: " + f.Did
}

// repaired adds what was done, or in a dry run would be.
func (r *repairRun) repaired(f Repaired, would, did string) {
	if f.Did = did; r.DryRun {
		f.Did, f.Would = "", would
	}
	r.add(f)
}

// nodes repairs what each node can repair itself.
func (r *repairRun) nodes(ctx context.Context) error {
	return session.ForEachNode(r.Cluster.Members(), func(n config.Node) error {
		if f := r.Fact(n); !f.Joined || f.Running() {
			return nil
		}
		checks, err := r.RepairNode(ctx, n.Name, r.DryRun)
		for _, f := range nodeRepairs(n.Name, r.DryRun, checks, err) {
			r.add(f)
		}
		return ctx.Err()
	})
}

// nodeRepairs turns labnode's checks into findings: what it repaired, would repair, or left. A labnode that did not answer is left to a
// person.
func nodeRepairs(node string, dryRun bool, checks []join.Check, err error) (found []Repaired) {
	if err != nil {
		return []Repaired{{Node: node, Symptom: "labnode-not-answering", Evidence: "labnode does not answer: " + err.Error(),
			Left: "labctl ssh " + node + " -- labnode mend --dry-run shows why"}}
	}
	for _, c := range checks {
		f := Repaired{Node: node, Symptom: string(c.Symptom), Evidence: c.Evidence}
		switch {
		case c.Result == join.Fixable && dryRun:
			f.Would = c.Hint
		case c.Result == join.Fixable, c.Result == join.Blocked:
			f.Left = c.Hint
		case c.Fixed != "":
			f.Did = c.Fixed
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}

// members removes the learners that no join will promote.
func (r *repairRun) members(ctx context.Context) error {
	if r.DryRun {
		machines, err := etcdadmin.Machines(ctx, r.Session)
		if err != nil {
			return err
		}
		statuses, err := r.Admin.Etcd.Status(ctx)
		for _, v := range etcd.Judge(statuses, machines, "") {
			if v.Action == etcd.Remove {
				r.addMember(v)
			}
		}
		return err
	}
	removed, _, err := etcdadmin.Clean(ctx, r.Session, r.Admin, "")
	for _, v := range removed {
		r.addMember(v)
	}
	return err
}

func (r *repairRun) addMember(v etcd.Verdict) {
	r.repaired(Repaired{Node: v.Machine, Symptom: string(symptom.EtcdStaleMember), Evidence: fmt.Sprintf("%s: %s", v.Member, v.Reason)},
		"remove it from etcd", "removed it from etcd")
}

// has tells whether something was found on the node.
func (r *repairRun) has(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.found, func(f Repaired) bool { return f.Node == name })
}
