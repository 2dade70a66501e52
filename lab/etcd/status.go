package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// electionTime is longer than an election takes with etcd's defaults, and electionPace lies between two looks at one.
const (
	electionTime = 2500 * time.Millisecond
	electionPace = 200 * time.Millisecond
)

// Status lists the members and asks each about itself. A member that cannot be asked has its Err; the call fails only if there is no list. If
// the members are electing a leader, which is no failure, it asks again until they have one.
func (c *Client) Status(ctx context.Context) ([]Status, error) {
	end := time.Now().Add(electionTime)
	for {
		statuses, err := c.statuses(ctx, false)
		if err != nil || !electing(statuses) || time.Now().After(end) {
			return statuses, err
		}
		select {
		case <-ctx.Done():
			return statuses, nil
		case <-time.After(electionPace):
		}
	}
}

// electing tells whether the members that answer name different leaders, or one that answers and does not lead.
func electing(statuses []Status) bool {
	leaders := map[uint64]bool{}
	for _, s := range statuses {
		if s.Healthy {
			leaders[s.LeaderID] = true
		}
	}
	deposed := func(s Status) bool {
		return leaders[s.Member.ID] && !s.Leader && (s.State == Serving || s.State == Leaderless)
	}
	return len(leaders) > 1 || slices.ContainsFunc(statuses, deposed)
}

// LocalStatus is Status of the members that the first endpoint to answer remembers. It needs no quorum, and may be out of date.
func (c *Client) LocalStatus(ctx context.Context) ([]Status, error) {
	return c.statuses(ctx, true)
}

func (c *Client) statuses(ctx context.Context, local bool) ([]Status, error) {
	members, err := c.list(ctx, local)
	if err != nil {
		return nil, err
	}
	statuses := make([]Status, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		wg.Go(func() { statuses[i] = c.memberStatus(ctx, m) })
	}
	wg.Wait()
	assignAlarms(statuses)
	return statuses, nil
}

// assignAlarms gives each member the alarms that are its own. They are read out of the members' errors: etcd's own alarm list is answered
// only by a quorum.
func assignAlarms(statuses []Status) {
	for _, s := range statuses {
		for _, text := range s.Errors {
			id, kind, ok := parseAlarm(text)
			if !ok {
				continue
			}
			if owner := statusOf(statuses, id); owner != nil && !slices.Contains(owner.Alarms, kind) {
				owner.Alarms = append(owner.Alarms, kind)
			}
		}
	}
}

// parseAlarm reads "memberID:10501334649042878790 alarm:NOSPACE".
func parseAlarm(text string) (id uint64, kind string, ok bool) {
	member, kind, ok := strings.Cut(text, " alarm:")
	number, prefixed := strings.CutPrefix(member, "memberID:")
	id, err := strconv.ParseUint(number, 10, 64)
	return id, kind, ok && prefixed && err == nil
}

func (c *Client) memberStatus(ctx context.Context, m Member) Status {
	s := Status{Member: m}
	a, state, err := c.askMember(ctx, m)
	s.State, s.Err = state, err
	if err != nil {
		return s
	}
	s.Leader, s.LeaderID = a.leader == m.ID, a.leader
	s.RaftIndex, s.RaftApplied, s.RaftTerm = a.index, a.applied, a.term
	s.DBSize, s.Version, s.Errors = a.dbSize, a.version, a.errors
	if a.leader == 0 {
		s.State, s.Err = Leaderless, errors.New("knows no leader")
	}
	s.Healthy = s.Err == nil
	return s
}

// askMember asks at the member's URLs in turn until it answers there.
func (c *Client) askMember(ctx context.Context, m Member) (answer, State, error) {
	if !m.Started {
		return answer{}, NotStarted, errors.New("has not started")
	}
	state, err := Silent, errors.New("has no client URL")
	for _, endpoint := range m.ClientURLs {
		var a answer
		if a, err = c.statusAt(ctx, endpoint); err != nil {
			state = Silent
			continue
		}
		// A machine made anew at the same address is not the member listed.
		if a.id == m.ID {
			return a, Serving, nil
		}
		state, err = Displaced, fmt.Errorf("%s is answered by another member, %x", endpoint, a.id)
	}
	return answer{}, state, err
}

func (c *Client) statusAt(ctx context.Context, endpoint string) (answer, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	a, err := c.remote.status(ctx, endpoint)
	if err != nil {
		return answer{}, fmt.Errorf("ask %s for its status: %w", endpoint, err)
	}
	return a, nil
}

// Healthy returns nil when every member is a started voter that answers, all agree on a leader among them, and none knows of an alarm.
// Otherwise its error names each problem.
func (c *Client) Healthy(ctx context.Context) error {
	statuses, err := c.Status(ctx)
	if err != nil {
		return err
	}
	if problems := Problems(statuses); len(problems) > 0 {
		return errors.New("etcd is not healthy: " + strings.Join(problems, "; "))
	}
	return nil
}

// Problems lists what keeps the members from being healthy as Healthy means it, each once.
func Problems(statuses []Status) []string {
	if len(statuses) == 0 {
		return []string{"it has no members"}
	}
	var problems []string
	for _, s := range statuses {
		if s.Err != nil {
			problems = append(problems, fmt.Sprintf("member %s: %v", s.Member, s.Err))
		}
		if s.Member.Learner {
			problems = append(problems, fmt.Sprintf("member %s: is a learner", s.Member))
		}
	}
	problems = append(problems, leaderProblems(statuses)...)
	return append(problems, alarmProblems(statuses)...)
}

func leaderProblems(statuses []Status) []string {
	var leader *Status // the first member that has a say
	for i, s := range statuses {
		switch {
		case !s.Healthy:
		case leader == nil:
			leader = &statuses[i]
		case s.LeaderID != leader.LeaderID:
			return []string{fmt.Sprintf("members disagree on the leader: %s says %x, %s says %x",
				leader.Member, leader.LeaderID, s.Member, s.LeaderID)}
		}
	}
	if leader == nil {
		return []string{"no member knows a leader"}
	}
	if !slices.ContainsFunc(statuses, func(s Status) bool { return s.Member.ID == leader.LeaderID }) {
		return []string{fmt.Sprintf("the leader %x is not a member", leader.LeaderID)}
	}
	return nil
}

// alarmProblems lists each alarm once: every member repeats those of all.
func alarmProblems(statuses []Status) []string {
	var problems []string
	seen := map[string]bool{}
	for _, s := range statuses {
		for _, e := range s.Errors {
			if !seen[e] {
				seen[e] = true
				problems = append(problems, fmt.Sprintf("%s (reported by %s)", e, s.Member))
			}
		}
	}
	return problems
}
