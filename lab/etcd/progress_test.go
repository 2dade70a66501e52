package etcd

import (
	"testing"
	"time"
)

func TestLearners(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	leader := func(index uint64) Status {
		return Status{Member: member(1), Healthy: true, Leader: true, RaftIndex: index}
	}
	learner := func(index uint64, healthy bool) Status {
		m := member(3)
		m.Learner = true
		return Status{Member: m, Healthy: healthy, RaftIndex: index}
	}
	sample := func(after time.Duration, s ...Status) Sample { return Sample{At: begin.Add(after), Statuses: s} }
	tests := []struct {
		name           string
		earlier, later Sample
		want           string
		ready          bool
	}{
		{"catches up", sample(0, leader(900), learner(640, true)), sample(2*time.Second, leader(1000), learner(880, true)),
			"m3 (3) has 880 of 1000 raft entries (88%), 120/s", false},
		{"has enough", sample(0, leader(1000), learner(880, true)), sample(time.Second, leader(1000), learner(900, true)),
			"m3 (3) has 900 of 1000 raft entries (90%), 20/s", true},
		{"stands still", sample(0, leader(1000), learner(10, true)), sample(time.Second, leader(1000), learner(10, true)),
			"m3 (3) has 10 of 1000 raft entries (1%), 0/s", false},
		{"first seen", sample(0), sample(time.Second, leader(1000), learner(500, true)),
			"m3 (3) has 500 of 1000 raft entries (50%), 0/s", false},
		{"began anew", sample(0, leader(1000), learner(500, true)), sample(time.Second, leader(1000), learner(3, true)),
			"m3 (3) has 3 of 1000 raft entries (0%), 0/s", false},
		{"silent", sample(0, leader(1000), learner(500, true)), sample(time.Second, leader(1000), learner(0, false)),
			"m3 (3) does not answer, so its raft index is unknown", false},
		{"no leader", sample(0, leader(1000), learner(500, true)), sample(time.Second, learner(1000, true)),
			"m3 (3) does not answer, so its raft index is unknown", false},
		{"no time between", sample(0, leader(1000), learner(500, true)), sample(0, leader(1000), learner(510, true)),
			"m3 (3) has 510 of 1000 raft entries (51%), 0/s", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Learners(tt.earlier, tt.later)
			if len(got) != 1 || got[0].String() != tt.want || got[0].Ready() != tt.ready {
				t.Errorf("got %v, ready %v, want %s, %v", got, got[0].Ready(), tt.want, tt.ready)
			}
		})
	}
	if got := Learners(sample(0), sample(1, leader(1), Status{Member: member(2), Healthy: true})); len(got) != 0 {
		t.Errorf("voters are learners: %v", got)
	}
}
