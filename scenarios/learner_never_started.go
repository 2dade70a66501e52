package scenarios

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"k8slab/lab/symptom"
)

var learnerNeverStarted = Fault{
	Name:    "learner-never-started",
	Story:   "the node's own learner from an earlier join is registered and has never started (kubeadm#3152)",
	Roles:   controlPlane,
	Alone:   "kubeadm joins after 19 s",
	Outside: true,
	Inject: func(ctx context.Context, t Target) error {
		return t.etcdctl(ctx, "member", "add", t.Node, "--learner", "--peer-urls=https://"+t.Address+":2380")
	},
	Effect:  func(ctx context.Context, t Target) error { return t.noRoomForLearner(ctx) },
	Symptom: symptom.EtcdLearnerNotInSync,
	Recover: nodeVerb("join"),
	Join:    &Join{Cause: symptom.EtcdTooManyLearners},
}

// strangersURL has an address that no machine has.
const strangersURL = "https://192.0.2.43:2380"

// noRoomForLearner returns nil if etcd refuses another learner, as it would in the join of any control plane.
func (t Target) noRoomForLearner(ctx context.Context) error {
	if err := t.expelStranger(ctx); err != nil { // left of an earlier check that got no answer
		return err
	}
	err := t.etcdctl(ctx, "member", "add", "fault", "--learner", "--peer-urls="+strangersURL)
	switch {
	case err == nil:
		return cmp.Or(t.expelStranger(ctx), absent("etcd takes another learner"))
	case strings.Contains(err.Error(), "too many learner"):
		return nil
	}
	return err
}

// expelStranger removes the member that noRoomForLearner added.
func (t Target) expelStranger(ctx context.Context) error {
	members, err := t.etcdMembers(ctx)
	for _, m := range members {
		if slices.Contains(m.PeerURLs, strangersURL) {
			err = errors.Join(err, t.etcdctl(ctx, "member", "remove", strconv.FormatUint(m.ID, 16)))
		}
	}
	return err
}
