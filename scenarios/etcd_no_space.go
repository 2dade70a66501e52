package scenarios

import (
	"context"
	"time"

	"k8slab/lab/symptom"
)

var etcdNoSpace = Fault{
	Name:    "etcd-no-space",
	Story:   "etcd's database has reached its quota: an alarm, and from then on the whole cluster takes no writes (etcd#14497)",
	Roles:   controlPlane,
	Symptom: symptom.DiskFull,
	Of:      anywhere,
	Applies: threeControlPlanes,
	Inject:  smallQuota.make,
	Effect: func(ctx context.Context, t Target) error {
		put := append(etcdctl(t.Address), "put", writesKey, "1")
		return t.says(ctx, []string{"database space exceeded"}, put...)
	},
	Recover: repair,
	May:     []Change{Quorum},
	Restore: func(ctx context.Context, t Target) error {
		if err := smallQuota.undo(ctx, t); err != nil {
			return err
		}
		// An etcd that still has the quota would raise the alarm again.
		err := t.await(ctx, "etcd to start without the quota", time.Minute, time.Second, func(ctx context.Context) error {
			return t.shell(ctx, t.Node, "! pgrep --full -- '--quota-backend-bytes=104857[6]'")
		})
		if err != nil {
			return err
		}
		return t.etcdctl(ctx, "alarm", "disarm")
	},
}

// Any database is larger than this quota.
var smallQuota = edit{path: manifests + "etcd.yaml", how: addFlag("etcd", "--quota-backend-bytes=1048576")}
