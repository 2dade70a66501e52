package etcd

import (
	"context"
	"fmt"
)

// Resign has another voter lead, if the member does: the one that is the least behind. Without a leader that hands over, the others notice its end
// only after a second or more, and take no writes until then. Where no other voter is healthy nothing is done.
func (c *Client) Resign(ctx context.Context, id uint64) error {
	statuses, err := c.Status(ctx)
	if err != nil {
		return err
	}
	leaving := statusOf(statuses, id)
	if leaving == nil || !leaving.Leader {
		return nil
	}
	var next *Status
	for i, s := range statuses {
		if s.Member.ID != id && s.Healthy && !s.Member.Learner && (next == nil || s.RaftIndex > next.RaftIndex) {
			next = &statuses[i]
		}
	}
	if next == nil {
		return nil
	}
	err = c.change(ctx, fmt.Sprintf("etcd move the lead from %s to %s", leaving.Member, next.Member), c.timeout, func(ctx context.Context) error {
		return c.remote.lead(ctx, leaving.Member.ClientURLs[0], next.Member.ID)
	})
	if err != nil {
		return fmt.Errorf("have %s lead etcd instead of %s: %w", next.Member, leaving.Member, err)
	}
	return nil
}
