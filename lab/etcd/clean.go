package etcd

import (
	"context"
	"fmt"
	"slices"
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
		machines, err := how.Machines(ctx)
		if err != nil {
			return removed, nil, err
		}
		statuses, err := c.Status(ctx)
		if err != nil {
			return removed, nil, err
		}
		left = Judge(statuses, machines, how.Joiner)
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

// Membership is what Dismiss asks of a cluster.
type Membership interface {
	Members(ctx context.Context) ([]Member, error)
	Remove(ctx context.Context, id uint64) error // refuses what would cost the quorum
}

// Dismiss removes the member that has the peer URL, and looks whether it has left. It returns what it removed, also with an error; nil when
// the cluster has no such member. before is called ahead of the removal, and its error prevents it.
func Dismiss(ctx context.Context, c Membership, peerURL string, before func(Member) error) (removed *Member, err error) {
	for {
		members, err := c.Members(ctx)
		if err != nil {
			return removed, err
		}
		i := slices.IndexFunc(members, func(m Member) bool { return slices.Contains(m.PeerURLs, peerURL) })
		if i < 0 {
			return removed, nil
		}
		if removed != nil {
			return removed, fmt.Errorf("etcd member %s was removed and is there again", members[i])
		}
		if err := before(members[i]); err != nil {
			return nil, err
		}
		if err := c.Remove(ctx, members[i].ID); err != nil {
			return nil, err
		}
		removed = &members[i]
	}
}
