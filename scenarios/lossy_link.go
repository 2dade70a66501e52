package scenarios

import (
	"context"
	"errors"
	"strings"
	"time"
)

var lossyLink = Fault{
	Name:  "lossy-link",
	Story: "the link of a control plane loses one packet in five: everything is slow, and nothing may fail of it (control-plane-join-failures)",
	Roles: controlPlane,
	// TCP sends again: the cluster lives with it, and a diagnosis must not take it for a firewall.
	Symptom: "",
	Applies: threeControlPlanes,
	Inject: func(ctx context.Context, s Site) error {
		return s.wall(ctx, "ip saddr "+s.others()+" numgen random mod 100 < 20 drop", "accept")
	},
	Bites:   slowAnswers,
	Once:    true,
	Recover: repair,
	Restore: openWall,
}

// slowAnswers is nil once the node's etcd takes longer to answer another control plane than any packet that is not lost.
func slowAnswers(ctx context.Context, s Site) error {
	out, err := s.etcdOf(ctx, s.Address, "--command-timeout=5s", "endpoint", "health", "--write-out=simple")
	_, took, found := strings.Cut(out, "took = ")
	if err != nil || !found {
		return ctx.Err() // lost more than once
	}
	took, _, _ = strings.Cut(strings.TrimSpace(took), "\n")
	if d, err := time.ParseDuration(took); err == nil && d < 200*time.Millisecond {
		return errors.New("its etcd answers within " + took)
	}
	return nil
}
