package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var learnerNeverStarted = Fault{
	Name:    "learner-never-started",
	Story:   "the node's own learner from an earlier join is registered and has never started (kubeadm#3152)",
	Roles:   controlPlane,
	Symptom: symptom.EtcdTooManyLearners,
	Inject: func(ctx context.Context, s Site) error {
		return s.etcdctl(ctx, "member", "add", s.Node, "--learner", "--peer-urls=https://"+s.Address+":2380")
	},
	Join: &Join{Cause: symptom.EtcdTooManyLearners},
}
