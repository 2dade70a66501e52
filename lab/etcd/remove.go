package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// QuorumError refuses a removal, with the voters counted before and after it.
type QuorumError struct {
	Member                  Member
	Voters, Healthy         int // now
	VotersLeft, HealthyLeft int // after the removal
}

// quorum is how many of n voters must agree.
func quorum(n int) int { return n/2 + 1 }

func (e *QuorumError) Error() string {
	what := fmt.Sprintf("removing etcd member %s is refused: ", e.Member)
	switch {
	case e.VotersLeft == 0:
		return what + "it is the last voter"
	case e.Healthy < quorum(e.Voters):
		return what + fmt.Sprintf("%d of %d voters are healthy and it takes %d to agree to it",
			e.Healthy, e.Voters, quorum(e.Voters))
	}
	return what + fmt.Sprintf("%d of the %d voters left would be healthy and they need %d",
		e.HealthyLeft, e.VotersLeft, quorum(e.VotersLeft))
}

// QuorumAfterRemoval returns a *QuorumError unless the present voters can agree to remove a member and those left are a quorum of
// themselves. Learners carry no quorum.
func QuorumAfterRemoval(statuses []Status, id uint64) error {
	e := &QuorumError{}
	found := false
	for _, s := range statuses {
		target := s.Member.ID == id
		if target {
			e.Member, found = s.Member, true
		}
		if s.Member.Learner {
			continue
		}
		e.Voters += 1
		e.Healthy += count(s.Healthy)
		e.VotersLeft += count(!target)
		e.HealthyLeft += count(!target && s.Healthy)
	}
	if !found {
		return fmt.Errorf("project removal of etcd member %x: it is not a member", id)
	}
	if e.VotersLeft == 0 || e.Healthy < quorum(e.Voters) || e.HealthyLeft < quorum(e.VotersLeft) {
		return e
	}
	return nil
}

// HasQuorum tells whether enough voters are healthy to agree on anything.
func HasQuorum(statuses []Status) bool {
	voters, healthy := 0, 0
	for _, s := range statuses {
		voters += count(!s.Member.Learner)
		healthy += count(!s.Member.Learner && s.Healthy)
	}
	return voters > 0 && healthy >= quorum(voters)
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A leader that reaches nobody holds the others up until they have elected one of their own, which changes no members for 5 s. So a removal
// without an answer in time, and one that came too early, is asked for again.
const (
	removals = 5
	settling = 2 * time.Second
)

// Remove removes a member, judging the quorum from a fresh status before each try; one that is not in the cluster is fine. After any other
// failure the removal may have happened: removing again is safe.
func (c *Client) Remove(ctx context.Context, id uint64) error {
	for try := 1; ; try++ {
		statuses, err := c.Status(ctx)
		if err != nil {
			return fmt.Errorf("remove etcd member %x: %w", id, err)
		}
		target := statusOf(statuses, id)
		if target == nil {
			return nil
		}
		if err := QuorumAfterRemoval(statuses, id); err != nil {
			return err
		}
		via := spokesman(statuses, id)
		if err := c.mutated(fmt.Sprintf("etcd remove member %s", target.Member)); err != nil {
			return err
		}
		err = c.removeAt(ctx, via.Member.ClientURLs[0], id)
		early := errors.Is(err, errUnsettled)
		late := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
		switch {
		case err == nil, errors.Is(err, errNoMember):
			return nil
		case !early && !late || try == removals:
			return fmt.Errorf("remove etcd member %s through %s: %w", target.Member, via.Member, err)
		}
		if early {
			select {
			case <-time.After(settling):
			case <-ctx.Done():
			}
		}
	}
}

func (c *Client) removeAt(ctx context.Context, endpoint string, id uint64) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	return c.remote.remove(ctx, endpoint, id)
}

func statusOf(statuses []Status, id uint64) *Status {
	for i := range statuses {
		if statuses[i].Member.ID == id {
			return &statuses[i]
		}
	}
	return nil
}

// spokesman picks whom to ask for a removal: never the member to go, which may stop before it answers, and the leader if possible. A kept
// quorum means that there is one.
func spokesman(statuses []Status, leaving uint64) *Status {
	var other *Status
	for i, s := range statuses {
		if s.Member.ID == leaving || s.Member.Learner || !s.Healthy {
			continue
		}
		if s.Leader {
			return &statuses[i]
		}
		other = &statuses[i]
	}
	return other
}
