package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var etcdDataCorrupt = Fault{
	Name:    "etcd-data-corrupt",
	Story:   "the disk gives back other bytes than etcd wrote: its database cannot be opened any more (etcd#11949)",
	Roles:   controlPlane,
	Symptom: symptom.EtcdDataCorrupt,
	Applies: threeControlPlanes,
	// The pages that describe the database, while nobody can write them again.
	Inject: script(`
		pid=$(pgrep --oldest --exact etcd)
		kill -STOP "$pid"
		dd if=/dev/urandom of=/var/lib/etcd/member/snap/db bs=4096 count=2 conv=notrunc status=none
		kill -KILL "$pid"`),
	Bites:   memberDown,
	Recover: nodeVerb("rejoin"),
	May:     []Change{Identity},
	Restore: func(ctx context.Context, s Site) error {
		if memberDown(ctx, s) != nil { // it is healthy, or nobody waits for this any more
			return ctx.Err()
		}
		_, err := s.Labctl(ctx, "rejoin", s.Node)
		return err
	},
}
