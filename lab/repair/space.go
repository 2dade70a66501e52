package repair

import (
	"context"
	"fmt"

	"k8slab/lab/etcd"
	"k8slab/lab/session"
	"k8slab/lab/symptom"
)

// space ends the alarm of etcd members whose database has reached its quota.
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
		r.repaired(f, "compact etcd, defragment its members one after another, and disarm the alarm",
			"compacted etcd, defragmented its members one after another, and disarmed the alarm")
	}
	return nil
}
