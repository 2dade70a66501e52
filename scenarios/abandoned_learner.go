package scenarios

import "context"

var abandonedLearner = Fault{
	Name:  "abandoned-learner",
	Story: "kubeadm was killed after it had added its etcd member and before it promoted it (control-plane-join-failures)",
	Roles: controlPlane,
	Inject: func(ctx context.Context, s Site) error {
		return s.killKubeadmAt(ctx, "/etc/kubernetes/manifests/etcd.yaml")
	},
	Restore: stopKiller,
	Join:    &Join{},
}
