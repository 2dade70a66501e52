package etcd

import (
	"fmt"
	"time"
)

// Sample is the members' status at a moment.
type Sample struct {
	At       time.Time
	Statuses []Status
}

// Progress is how far a learner has caught up with the leader.
type Progress struct {
	Member Member
	Index  uint64  // of the learner's raft log
	Leader uint64  // of the leader's
	Rate   float64 // entries that the learner gained per second
	Known  bool    // both told their index
}

// promotable is the part of the leader's log that etcd wants a learner to have before it may vote (server/etcdserver/server.go,
// readyPercentThreshold).
const promotable = 0.9

// Ready tells whether etcd would promote the learner now.
func (p Progress) Ready() bool { return p.Known && float64(p.Index) >= promotable*float64(p.Leader) }

// String says for example "cp3 (8e9e) has 940 of 1000 raft entries (94%), 120/s".
func (p Progress) String() string {
	switch {
	case !p.Member.Started:
		return fmt.Sprintf("%s has not started", p.Member)
	case !p.Known:
		return fmt.Sprintf("%s does not answer, so its raft index is unknown", p.Member)
	}
	part := 1.0
	if p.Leader > 0 {
		part = float64(p.Index) / float64(p.Leader)
	}
	return fmt.Sprintf("%s has %d of %d raft entries (%.0f%%), %.0f/s", p.Member, p.Index, p.Leader, 100*part, p.Rate)
}

// Learners compares two samples and returns how far each learner of the later one is. One that the earlier does not have, or that began
// anew, has no rate.
func Learners(earlier, later Sample) []Progress {
	var leader *Status
	for i, s := range later.Statuses {
		if s.Leader && s.Healthy {
			leader = &later.Statuses[i]
		}
	}
	var all []Progress
	for _, s := range later.Statuses {
		if !s.Member.Learner {
			continue
		}
		p := Progress{Member: s.Member}
		if leader != nil && s.Healthy {
			p.Known, p.Index, p.Leader = true, s.RaftIndex, leader.RaftIndex
			p.Rate = rate(statusOf(earlier.Statuses, s.Member.ID), s, later.At.Sub(earlier.At))
		}
		all = append(all, p)
	}
	return all
}

func rate(before *Status, now Status, took time.Duration) float64 {
	if before == nil || !before.Healthy || took <= 0 || now.RaftIndex < before.RaftIndex {
		return 0
	}
	return float64(now.RaftIndex-before.RaftIndex) / took.Seconds()
}
