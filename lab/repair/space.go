package repair

import (
	"context"
	"fmt"
	"slices"

	"k8slab/lab/etcd"
	"k8slab/lab/session"
	"k8slab/lab/symptom"
)

// space ends the alarm of etcd members whose database has reached its quota. A member that starts with another quota may need it again.
func (r *repairRun) space(ctx context.Context) error {
	statuses, err := r.Admin.Etcd.Status(ctx)
	if err != nil {
		return nil // what the diagnosis names
	}
	cramped := etcd.Cramped(statuses)
	if len(cramped) == 0 {
		return nil
	}
	if !r.DryRun {
		if err := r.Admin.Etcd.Relieve(ctx); err != nil {
			return err
		}
	}
	for _, c := range cramped {
		f := Repaired{Symptom: string(symptom.DiskFull),
			Evidence: fmt.Sprintf("etcd member %s has the alarm %s: etcd takes no writes", c.Member, etcd.NoSpace)}
		for _, n := range r.Cluster.ControlPlanes() {
			if session.OwnsPeer(n, c.Member) {
				f.Node = n.Name
			}
		}
		if r.relieved(f.Node) {
			continue
		}
		r.repaired(f, "compact etcd, defragment its members one after another, and disarm the alarm",
			"compacted etcd, defragmented its members one after another, and disarmed the alarm")
	}
	return nil
}

// relieved tells whether the member's alarm has been ended in this pass.
func (r *repairRun) relieved(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.found[r.pass:], func(f Repaired) bool { return f.Node == name && f.Symptom == string(symptom.DiskFull) && f.Did != "" })
}
