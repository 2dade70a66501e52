package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
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
	Inject: func(ctx context.Context, s Site) error {
		return s.etcdctl(ctx, "member", "add", s.Node, "--learner", "--peer-urls=https://"+s.Address+":2380")
	},
	Bites:   func(ctx context.Context, s Site) error { return s.noRoomForLearner(ctx) },
	Symptom: symptom.EtcdLearnerNotInSync,
	Recover: nodeVerb("join"),
	Join:    &Join{Cause: symptom.EtcdTooManyLearners},
}

// noRoomForLearner wants etcd to take no further member: what every control plane's join would meet.
func (s Site) noRoomForLearner(ctx context.Context) error {
	out, err := s.etcd(ctx, "member", "add", "fault", "--learner", "--peer-urls=https://192.0.2.43:2380", "--write-out=json")
	if err != nil {
		if strings.Contains(err.Error(), "too many learner") {
			return nil
		}
		return err
	}
	var added struct{ Member struct{ ID uint64 } }
	if err = json.Unmarshal([]byte(out), &added); err == nil {
		err = s.etcdctl(ctx, "member", "remove", strconv.FormatUint(added.Member.ID, 16))
	}
	if err != nil {
		return fmt.Errorf("take the member that was to be refused back: %w", err)
	}
	return absent("etcd takes another learner")
}
