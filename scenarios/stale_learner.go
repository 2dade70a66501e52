package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var staleLearner = Fault{
	Name:    "stale-learner",
	Story:   "a learner of a machine that no longer exists holds etcd's only learner slot (control-plane-join-failures, etcd#18793)",
	Roles:   controlPlane,
	Alone:   "kubeadm joins nothing: it fails after 122 s, with a time-out",
	Symptom: symptom.EtcdStaleMember, // at rest it is in nobody's way
	Of:      theCluster,
	Inject: func(ctx context.Context, t Target) error {
		return t.etcdctl(ctx, "member", "add", "phantom", "--learner", "--peer-urls=https://192.0.2.42:2380")
	},
	Effect:  func(ctx context.Context, t Target) error { return t.noRoomForLearner(ctx) },
	Recover: repair,
	Join:    &Join{Cause: symptom.EtcdTooManyLearners},
}
