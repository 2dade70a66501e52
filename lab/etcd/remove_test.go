package etcd

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
)

// voters makes statuses of members 1…n from letters: h(ealthy) or d(own) voters,
// H or D learners.
func voters(states string) []Status {
	var statuses []Status
	for i, state := range states {
		m := member(uint64(i + 1))
		m.Learner = state == 'H' || state == 'D'
		statuses = append(statuses, Status{Member: m, Healthy: state == 'h' || state == 'H'})
	}
	return statuses
}

func TestQuorumAfterRemoval(t *testing.T) {
	tests := []struct {
		states  string
		remove  uint64
		refused bool
	}{
		{"h", 1, true}, // the last voter
		{"d", 1, true},
		{"hH", 1, true}, // a learner is no voter
		{"hh", 1, false},
		{"hd", 2, true}, // one of two cannot agree
		{"hd", 1, true},
		{"hhh", 3, false},
		{"hhd", 3, false}, // the dead one may go
		{"hhd", 1, true},  // a living one may not
		{"hdd", 3, true},  // nobody can agree
		{"ddd", 1, true},
		{"hhhh", 1, false},
		{"hhhd", 1, false}, // two of the three left
		{"hhdd", 3, true},  // three of four must agree
		{"hhhdd", 4, false},
		{"hhhdd", 1, true}, // two of the four left
		{"hhhhd", 1, false},
		{"hhhH", 4, false},
		{"hhdD", 4, false},
		{"hddD", 4, true}, // a learner's removal needs agreement too
		{"hhdHH", 1, true},
		{"hhh", 9, true}, // not a member
	}
	for _, tt := range tests {
		err := QuorumAfterRemoval(voters(tt.states), tt.remove)
		if (err != nil) != tt.refused {
			t.Errorf("%s without %d: %v", tt.states, tt.remove, err)
		}
		if _, typed := errors.AsType[*QuorumError](err); typed != (tt.refused && tt.remove != 9) {
			t.Errorf("%s without %d: error of type %T", tt.states, tt.remove, err)
		}
	}
}

func TestQuorumErrorHasNumbers(t *testing.T) {
	tests := []struct {
		states string
		remove uint64
		want   QuorumError
		text   string
	}{
		{"hhd", 1, QuorumError{Voters: 3, Healthy: 2, VotersLeft: 2, HealthyLeft: 1},
			"removing etcd member m1 (1) is refused: 1 of the 2 voters left would be healthy and they need 2"},
		{"hdd", 2, QuorumError{Voters: 3, Healthy: 1, VotersLeft: 2, HealthyLeft: 1},
			"removing etcd member m2 (2) is refused: 1 of 3 voters are healthy and it takes 2 to agree to it"},
		{"h", 1, QuorumError{Voters: 1, Healthy: 1}, "removing etcd member m1 (1) is refused: it is the last voter"},
	}
	for _, tt := range tests {
		err := QuorumAfterRemoval(voters(tt.states), tt.remove)
		got, ok := errors.AsType[*QuorumError](err)
		if !ok || got.Error() != tt.text {
			t.Errorf("%s: error %v, want %s", tt.states, err, tt.text)
			continue
		}
		if got.Voters != tt.want.Voters || got.Healthy != tt.want.Healthy || got.VotersLeft != tt.want.VotersLeft || got.HealthyLeft != tt.want.HealthyLeft {
			t.Errorf("%s: numbers %+v, want %+v", tt.states, got, tt.want)
		}
	}
}

func TestRemove(t *testing.T) {
	learner := member(3)
	learner.Learner = true
	tests := []struct {
		name    string
		arrange func(f *fakeRemote)
		remove  uint64
		mutated []string
		refused bool
		failed  bool
	}{
		{"a follower, through the leader", func(f *fakeRemote) { f.removals[at(1)+" 3"] = nil }, 3, []string{"etcd remove member m3 (3)"}, false, false},
		{"the leader, through another", func(f *fakeRemote) { f.removals[at(3)+" 1"] = nil }, 1, []string{"etcd remove member m1 (1)"}, false, false},
		{"one that is down", func(f *fakeRemote) { f.down(3); f.removals[at(1)+" 3"] = nil }, 3, []string{"etcd remove member m3 (3)"}, false, false},
		{"one that is absent", func(*fakeRemote) {}, 9, nil, false, false},
		{"one that vanished meanwhile", func(f *fakeRemote) { f.removals[at(1)+" 3"] = errNoMember }, 3, []string{"etcd remove member m3 (3)"}, false, false},
		{"a learner", func(f *fakeRemote) { f.cluster(1, member(1), member(2), learner); f.removals[at(1)+" 3"] = nil }, 3, []string{"etcd remove member m3 (3)"}, false, false},
		{"a living one while another is down", func(f *fakeRemote) { f.down(3) }, 2, nil, true, true},
		{"etcd refuses", func(f *fakeRemote) { f.removals[at(1)+" 3"] = fmt.Errorf("no") }, 3, []string{"etcd remove member m3 (3)"}, false, true},
		{"nobody leads yet", func(f *fakeRemote) { f.late = 2; f.removals[at(1)+" 3"] = nil }, 3, slices.Repeat([]string{"etcd remove member m3 (3)"}, 3), false, false},
		{"who leads has just been elected", func(f *fakeRemote) { f.early = 3; f.removals[at(1)+" 3"] = nil }, 3, slices.Repeat([]string{"etcd remove member m3 (3)"}, 4), false, false},
		{"nobody is ever settled", func(f *fakeRemote) { f.early = 99 }, 3, slices.Repeat([]string{"etcd remove member m3 (3)"}, removals), false, true},
		{"nobody ever leads", func(f *fakeRemote) { f.late = 99 }, 3, slices.Repeat([]string{"etcd remove member m3 (3)"}, removals), false, true},
		{"no list", func(f *fakeRemote) { f.down(1) }, 3, nil, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // so that waiting takes no time
				f := newFake(t)
				f.cluster(1, member(1), member(2), member(3))
				tt.arrange(f)
				var mutated []string
				err := f.client(func(what string) error { mutated = append(mutated, what); return nil }, at(1)).Remove(t.Context(), tt.remove)
				if (err != nil) != tt.failed {
					t.Errorf("error %v", err)
				}
				if _, refused := errors.AsType[*QuorumError](err); refused != tt.refused {
					t.Errorf("error %v of type %T", err, err)
				}
				if !slices.Equal(mutated, tt.mutated) {
					t.Errorf("reported %q, want %q", mutated, tt.mutated)
				}
			})
		})
	}
}
