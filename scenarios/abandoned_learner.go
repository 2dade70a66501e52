package scenarios

import (
	"context"
	"time"

	"k8slab/lab/symptom"
)

var abandonedLearner = Fault{
	Name:    "abandoned-learner",
	Story:   "kubeadm was killed after it had added its etcd member and before it promoted it (control-plane-join-failures)",
	Roles:   controlPlane,
	Alone:   "tried again, kubeadm refuses after 0.8 s",
	Outside: true,
	Inject: func(ctx context.Context, t Target) error {
		return t.killKubeadmAt(ctx, etcdAdded)
	},
	Effect: func(ctx context.Context, t Target) error {
		if err := killed(ctx, t); err != nil {
			return err
		}
		// Wait here and do not join again: the next join would succeed.
		return t.await(ctx, "etcd to have no room for a learner", 20*time.Second, time.Second, t.noRoomForLearner)
	},
	Symptom: symptom.EtcdLearnerNotInSync,
	Recover: nodeVerb("join"),
	Restore: stopUnit(killer),
	Join:    &Join{},
}
