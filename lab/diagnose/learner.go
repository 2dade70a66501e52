package diagnose

import "fmt"

// promotable is the part of the leader's log, in per cent, that etcd wants a learner to have before it may vote.
const promotable = 90

// progress says how far a learner is, such as "has 940 of 2000 raft entries (47%), gains 120/s, can be promoted in about 7.2s".
func (m MemberRow) progress() string {
	switch {
	case m.Error != "":
		return "does not answer: " + m.Error
	case !m.Started:
		return "has not started"
	}
	said := fmt.Sprintf("has %d of %d raft entries (%d%%)", m.RaftIndex, m.leaderIndex(), m.share())
	missing := float64(m.leaderIndex())*promotable/100 - float64(m.RaftIndex)
	switch {
	case missing <= 0:
		return said + ", enough for etcd to promote it"
	case m.Rate <= 0:
		return fmt.Sprintf("%s and gains none; etcd promotes it from %d%%", said, promotable)
	}
	return fmt.Sprintf("%s, gains %.0f/s, can be promoted (%d%%) in about %s", said, m.Rate, promotable, seconds(missing/m.Rate))
}

func (m MemberRow) leaderIndex() uint64 {
	if sum := m.RaftIndex + m.Behind; sum >= m.RaftIndex {
		return sum
	}
	return m.RaftIndex
}

// share is the part of the leader's log that the member has, in per cent; 100 means all of it.
func (m MemberRow) share() int {
	leader := m.leaderIndex()
	if leader == 0 {
		return 0
	}
	return int(100 * (float64(m.RaftIndex) / float64(leader)))
}

// title is the best name that the member has.
func (m MemberRow) title() string {
	switch {
	case m.Name != "":
		return m.Name
	case m.Node != "":
		return m.Node
	case m.PeerURL != "":
		return m.ID + " at " + m.PeerURL
	}
	return m.ID
}
