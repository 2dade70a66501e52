package scenarios

import (
	"context"
	"errors"
	"time"

	"k8slab/lab/symptom"
)

var errMemberDown = errors.New("its etcd member is down")

var etcdDataCorrupt = Fault{
	Name:    "etcd-data-corrupt",
	Story:   "the disk gives back other bytes than etcd wrote: its database cannot be opened any more (etcd#11949)",
	Loses:   true,
	Roles:   controlPlane,
	Symptom: symptom.EtcdDataCorrupt,
	Applies: threeControlPlanes,
	// The first pages describe the database. etcd is stopped meanwhile, so it cannot write them again.
	Inject: script(`
		pid=$(pgrep --oldest --exact etcd)
		kill -STOP "$pid"
		dd if=/dev/urandom of=/var/lib/etcd/member/snap/db bs=4096 count=2 conv=notrunc status=none
		kill -KILL "$pid"`),
	Effect:  memberDown,
	Recover: nodeVerb("rejoin"),
	May:     []Change{Identity},
	Restore: rejoinIfDown,
}

// rejoinIfDown joins the node anew if its etcd member does not come back by itself.
func rejoinIfDown(ctx context.Context, t Target) error {
	err := t.await(ctx, "its etcd member to answer", 20*time.Second, time.Second, func(ctx context.Context) error {
		switch err := memberDown(ctx, t); {
		case errors.Is(err, errMemberHealthy):
			return nil
		case err == nil:
			return errMemberDown
		default:
			return err
		}
	})
	if errors.Is(err, errMemberDown) && ctx.Err() == nil {
		_, err = t.Labctl(ctx, "rejoin", t.Node)
	}
	return err
}
