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
	Inject: func(ctx context.Context, s Site) error {
		return s.killKubeadmAt(ctx, "/etc/kubernetes/manifests/etcd.yaml")
	},
	Bites: func(ctx context.Context, s Site) error {
		if err := killed(ctx, s); err != nil {
			return err
		}
		// The join is made once: the next one would succeed.
		return s.await(ctx, "etcd to have no room for a learner", 20*time.Second, time.Second, s.noRoomForLearner)
	},
	Symptom: symptom.EtcdLearnerNotInSync,
	Recover: nodeVerb("join"),
	Restore: stopUnit(killer),
	Join:    &Join{},
}
