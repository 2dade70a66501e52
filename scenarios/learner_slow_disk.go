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
	// The ballast comes as one snapshot, in writes of about a megabyte, two a second: longer than kubeadm waits.
	Inject: func(ctx context.Context, s Site) error {
		if err := s.ballast(ctx); err != nil {
			return err
		}
		if err := s.late(ctx, `until pgrep --exact etcd; do sleep 0.1; done; exec sh -ec "$2" sh 2`, throttling); err != nil {
			return err
		}
		return s.joinByHand(ctx, s.Address, "10s")
	},
	Bites: func(ctx context.Context, s Site) error {
		n, err := s.slowWrites(ctx, "0.256")
		if err == nil && n < 3 {
			err = fmt.Errorf("etcd has measured %d writes of more than 0.256 s", n)
		}
		return errors.Join(joinFailed(ctx, s), err)
	},
	Recover: nodeVerb("join"),
	Restore: func(ctx context.Context, s Site) error {
		return errors.Join(stopLate(ctx, s), s.throttle(ctx, "0"), unballast(ctx, s), forgetJoinByHand(ctx, s))
	},
}
