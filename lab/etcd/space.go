package etcd

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// NoSpace is the alarm of a member whose database has reached its quota. The cluster takes no writes until it is taken back.
const NoSpace = "NOSPACE"

// defragTimeout bounds the rewriting of one member's database. It has at most 8 GiB.
const defragTimeout = 5 * time.Minute

// Cramped are the members with the alarm.
func Cramped(statuses []Status) []Status {
	return slices.DeleteFunc(slices.Clone(statuses), func(s Status) bool { return !slices.Contains(s.Alarms, NoSpace) })
}

// Relieve ends the alarm NOSPACE: it forgets old revisions, has every member rewrite its database, one after another and the leader last,
// because a member answers nothing meanwhile, and then takes the alarms back. It can be repeated after a failure.
func (c *Client) Relieve(ctx context.Context) error {
	statuses, err := c.Status(ctx)
	if err != nil {
		return fmt.Errorf("relieve etcd: %w", err)
	}
	cramped := Cramped(statuses)
	if len(cramped) == 0 {
		return nil
	}
	order := slices.DeleteFunc(slices.Clone(statuses), func(s Status) bool { return !s.Healthy || len(s.Member.ClientURLs) == 0 })
	slices.SortStableFunc(order, func(a, b Status) int { return count(a.Leader) - count(b.Leader) })
	if len(order) == 0 {
		return fmt.Errorf("relieve etcd: no member is healthy")
	}
	first := order[0].Member.ClientURLs[0]
	compact := func(ctx context.Context) error { return c.remote.compact(ctx, first) }
	if err := c.change(ctx, "etcd compact", defragTimeout, compact); err != nil {
		return fmt.Errorf("compact etcd: %w", err)
	}
	for _, s := range order {
		defragment := func(ctx context.Context) error { return c.remote.defragment(ctx, s.Member.ClientURLs[0]) }
		if err := c.change(ctx, fmt.Sprintf("etcd defragment member %s", s.Member), defragTimeout, defragment); err != nil {
			return fmt.Errorf("defragment etcd member %s: %w", s.Member, err)
		}
	}
	for _, s := range cramped {
		disarm := func(ctx context.Context) error { return c.remote.disarm(ctx, first, s.Member.ID) }
		if err := c.change(ctx, fmt.Sprintf("etcd disarm member %s", s.Member), c.timeout, disarm); err != nil {
			return fmt.Errorf("disarm etcd member %s: %w", s.Member, err)
		}
	}
	return nil
}

// change tells of a change, and makes it unless that is refused. The call has its time, and ends when the client is closed.
func (c *Client) change(ctx context.Context, what string, limit time.Duration, do func(context.Context) error) error {
	if err := c.mutated(what); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(c.closed, cancel)()
	return do(ctx)
}
