package scenarios

import (
	"context"
	"fmt"
	"time"
)

var lossyLink = Fault{
	Name:  "lossy-link",
	Story: "the link of a control plane loses one packet in five: everything is slow, but nothing may fail (control-plane-join-failures)",
	Roles: controlPlane,
	// TCP sends again: the cluster lives with it, and a diagnosis must not take it for a firewall.
	Symptom: "",
	Applies: threeControlPlanes,
	Inject: func(ctx context.Context, t Target) error {
		return t.wall(ctx, "ip saddr "+t.others()+" numgen random mod 100 < 20 drop", "accept")
	},
	Effect:  slowAnswers,
	Once:    true,
	Recover: repair,
	Restore: openWall,
}

// slowAnswers is nil once most answers of the node's etcd come to another control plane later than that one's own by what TCP waits before it
// sends again. Each is compared with one that crosses no link, because a busy computer makes both late.
func slowAnswers(ctx context.Context, t Target) error {
	const asked, wanted, again = 5, 3, 200 * time.Millisecond
	late := 0
	for range asked {
		near, err := t.asked(ctx, "127.0.0.1")
		if err != nil {
			return fmt.Errorf("%s can ask no etcd: %w", t.ControlPlane, err)
		}
		far, _ := t.asked(ctx, t.Address) // lost for good takes all the time that it may
		if far >= near+t.patiently(again) {
			late++
		}
	}
	if late < wanted {
		return absent("of %d answers of its etcd %d come late", asked, late)
	}
	return ctx.Err()
}

// asked is how long the control plane waits for an answer of the member at the address.
func (t Target) asked(ctx context.Context, address string) (time.Duration, error) {
	begun := time.Now()
	_, err := t.etcdOf(ctx, address, "--command-timeout=2s", "endpoint", "status")
	return time.Since(begun), err
}
