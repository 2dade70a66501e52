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
	// TCP resends, so the cluster keeps working, and a diagnosis must not mistake it for a firewall.
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

// slowAnswers returns nil once most answers of the node's etcd reach another control plane later than the answers of that control plane's own
// etcd, by the time that TCP waits before it resends. The comparison excludes delays of a busy computer, which affect both.
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

// asked measures how long the control plane waits for an answer of the member at the address.
func (t Target) asked(ctx context.Context, address string) (time.Duration, error) {
	begun := time.Now()
	_, err := t.etcdOf(ctx, address, "--command-timeout=2s", "endpoint", "status")
	return time.Since(begun), err
}
