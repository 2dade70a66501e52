package scenarios

import (
	"context"
	"errors"
	"fmt"

	"k8slab/lab/symptom"
)

var learnerSlowDisk = Fault{
	Name:    "learner-slow-disk",
	Story:   "the disk of a joining control plane is too slow for etcd, which stays a learner until kubeadm gives up (kubeadm#2997)",
	Roles:   controlPlane,
	Alone:   "kubeadm fails after 456 s, with a time-out",
	Symptom: symptom.EtcdSlow,
	Applies: threeControlPlanes,
	Outside: true,
	// The ballast arrives as one snapshot in writes of about a megabyte, two a second. That takes longer than kubeadm waits.
	Inject: func(ctx context.Context, t Target) error {
		if err := t.ballast(ctx); err != nil {
			return err
		}
		if err := t.late(ctx, `until pgrep --exact etcd; do sleep 0.1; done; exec sh -ec "$2" sh 2`, throttling); err != nil {
			return err
		}
		return t.joinByHand(ctx, t.Address, "10s")
	},
	Effect: func(ctx context.Context, t Target) error {
		n, err := t.slowWrites(ctx, "0.256")
		if err == nil && n < 3 {
			err = fmt.Errorf("etcd has measured %d writes of more than 0.256 s", n)
		}
		return errors.Join(joinFailed(ctx, t), err)
	},
	Recover: nodeVerb("join"),
	Restore: func(ctx context.Context, t Target) error {
		return errors.Join(stopLate(ctx, t), t.throttle(ctx, "0"), unballast(ctx, t), forgetJoinByHand(ctx, t))
	},
}
