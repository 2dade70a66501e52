package etcd

import (
	"context"
	"fmt"
)

// CleanOptions say how Clean looks at machines, and what it does before a removal.
type CleanOptions struct {
	Joiner   string                                     // the machine that is about to join, "" at rest
	Machines func(context.Context) ([]Machine, error)   // looked at anew for every pass
	Before   func(ctx context.Context, v Verdict) error // called before each removal; its error prevents it. May be nil
}

// Clean removes the members that Judge finds removable, one in each pass: after a removal it lists, looks and judges again, because the
// quorum has changed and a join may have begun. It returns what it removed, and the verdicts on those that are left, also with an error;
// whether one of them means to wait or to stop is for the caller to act on.
func (c *Client) Clean(ctx context.Context, how CleanOptions) (removed, left []Verdict, err error) {
	gone := map[uint64]bool{}
	for {
		if left, err = c.judge(ctx, how); err != nil {
			return removed, left, err
		}
		next := NextRemoval(left)
		if next == nil {
			return removed, left, nil
		}
		if gone[next.Member.ID] {
			return removed, left, fmt.Errorf("remove etcd member %s: etcd agreed, and still lists it", next.Member)
		}
		if how.Before != nil {
			if err := how.Before(ctx, *next); err != nil {
				return removed, left, fmt.Errorf("before removing etcd member %s: %w", next.Member, err)
			}
		}
		if err := c.Remove(ctx, next.Member.ID); err != nil {
			return removed, left, err
		}
		gone[next.Member.ID] = true
		removed = append(removed, *next)
	}
}

func (c *Client) judge(ctx context.Context, how CleanOptions) ([]Verdict, error) {
	machines, err := how.Machines(ctx)
	if err != nil {
		return nil, err
	}
	statuses, err := c.Status(ctx)
	if err != nil {
		return nil, err
	}
	return Judge(statuses, machines, how.Joiner), nil
}
