// Package repair makes the repairs of a cluster that are safe, from cause to effect, and says what it leaves to a person.
package repair

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8slab/config"
	"k8slab/lab/cluster"
	"k8slab/lab/etcd"
	"k8slab/lab/etcdadmin"
	"k8slab/lab/join"
	"k8slab/lab/session"
	"k8slab/lab/symptom"
)

// Run makes the repairs that are safe: what `labnode repair` repairs on each node, learners that no join will promote, Nodes that were
// deleted while their kubelet runs, nodes that are in no cluster, what kubeadm made, and the pod network. For a node that still fails it
// climbs the ladder, as far as upTo. For what needs a person it returns the diagnosis' findings. It starts no machine that is off. It
// returns when the repairs have taken effect: the diagnosis no longer finds their causes, and the proof holds, unless something is left.
// A run that follows a dry run begins with what that has seen, which may be nil: its first pass does what the dry run has told of.
func Run(ctx context.Context, c *cluster.Run, upTo Rung, seen *Seen) ([]Repaired, error) {
	r := &repairRun{Run: c, upTo: upTo, more: morePasses, step: c.Events.Start("", "repair", 0)}
	begun := time.Now()
	if seen.fresh() {
		r.before, r.idle = seen.findings, seen.idle
	} else {
		r.look(ctx)
	}
	err := r.onePass(ctx)
	if seen != nil {
		*seen = Seen{r.before, begun, r.idle}
	}
	r.idle = nil
	if err != nil && !r.DryRun && ctx.Err() == nil && r.didAnything() { // what was repaired since may be why a repair failed
		err = r.anotherPass(ctx)
	}
	for r.emerged && ctx.Err() == nil {
		r.more--
		err = r.anotherPass(ctx)
	}
	for !r.DryRun && ctx.Err() == nil && r.climb(ctx) {
		err = r.anotherPass(ctx)
	}
	if ctx.Err() == nil {
		r.conclude(ctx)
	}
	return r.found, r.step.End(err)
}

// Seen is what a dry run found.
type Seen struct {
	findings []symptom.Finding // of its diagnosis
	at       time.Time
	idle     map[string]bool // the stages that had nothing to do
}

// fresh tells whether a dry run was made, and no more than a backup and a quick yes lay between.
func (s *Seen) fresh() bool { return s != nil && time.Since(s.at) <= 15*time.Second }

// look diagnoses the cluster.
func (r *repairRun) look(ctx context.Context) {
	r.step.Progress("diagnose")
	r.before = r.diagnose(ctx)
}

func (r *repairRun) anotherPass(ctx context.Context) error {
	r.look(ctx)
	return r.onePass(ctx)
}

// morePasses is how many passes may follow the first because each uncovers what the next may repair. The last one leaves what it uncovers.
const morePasses = 2

// onePass makes every repair of a component once, and waits for the verdict, which decides: if the lab is healthy, a repair that failed was
// not needed.
func (r *repairRun) onePass(ctx context.Context) error {
	r.found = slices.DeleteFunc(r.found, func(f Repaired) bool { return f.Left != "" })
	r.pass = len(r.found)
	err := r.all(ctx)
	if ctx.Err() != nil {
		return err
	}
	if err != nil && r.settle == 0 {
		r.settle = restTime
	}
	waited := r.verdict(ctx)
	if err != nil && waited == nil && !r.DryRun && !r.leftAnything() {
		r.step.Progress("a repair failed, and the lab is healthy all the same: %v", err)
		return nil
	}
	return errors.Join(err, waited)
}

// stage repairs one kind of thing.
type stage struct {
	name string
	do   func(context.Context) error
	made bool // only of what labctl made
}

// all makes the repairs, from cause to effect.
func (r *repairRun) all(ctx context.Context) error {
	return r.each(ctx, []stage{
		{"rights of the administrator", r.administrators, false},
		{"files of the image", r.files, true},
		{documentsStage, r.early, false},
		{"what each node can repair itself", r.nodes, false},
		{"container images of add-ons", r.images, true},
		{"certificates and kubeconfigs of control planes", r.credentials, false},
		{"kubelets' configurations and certificates", r.kubelets, false},
		{"etcd members", r.members, false},
		{"nodes that are in no cluster", r.outside, false},
		{"static pods", r.manifests, false},
		{"etcd without space", r.space, false},
		{"objects of kubeadm", r.objects, false},
		{"rights of the cluster's parts", r.rights, false},
		{"pod network", r.network, false},
		{"addresses of pods", r.addresses, false},
	})
}

// each tries every stage, even if one before it failed, but for those that had nothing to do in the dry run a moment ago.
func (r *repairRun) each(ctx context.Context, stages []stage) error {
	var errs []error
	idle := map[string]bool{}
	for _, s := range stages {
		if s.made && r.Cluster.OverSSH() || r.idle[s.name] {
			continue
		}
		r.step.Progress("%s", s.name)
		had := r.added
		err := s.do(ctx)
		idle[s.name] = err == nil && r.added == had && s.name != documentsStage
		errs = append(errs, err)
	}
	if r.DryRun {
		r.idle = idle
	}
	return errors.Join(errs...)
}

// documentsStage is a stage that others build on: it is never left out.
const documentsStage = "kubeadm's configuration of the cluster"

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
		return []Repaired{{Node: node, Symptom: string(labnodeSilent), Evidence: "labnode does not answer: " + err.Error(),
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
