package etcd

import (
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	voter := func(id uint64, healthy bool) Status { return Status{Member: member(id), Healthy: healthy} }
	learner := func(id uint64, started, healthy bool) Status {
		m := member(id)
		m.Learner, m.Started = true, started
		if !started {
			m.Name = ""
		}
		return Status{Member: m, Healthy: healthy}
	}
	machine := func(joining, data Fact) *Machine {
		return &Machine{Name: "m3", PeerURL: "https://m3:2380", Joining: joining, Data: data}
	}
	two := []Status{voter(1, true), voter(2, true)}
	tests := []struct {
		name    string
		others  []Status // members 1 and 2
		status  Status   // of the member judged, at m3's address
		machine *Machine // nil when nobody knows the address
		joiner  string
		want    Action
		says    string
	}{
		// Learners at the joiner's own address.
		{"own, never started", two, learner(3, false, false), machine(No, No), "m3", Remove, "no join is at work on m3"},
		{"own, started, disk empty", two, learner(3, true, false), machine(No, No), "m3", Remove, "no join is at work on m3"},
		{"own, started, disk has it", two, learner(3, true, false), machine(No, Yes), "m3", Remove, "no join is at work on m3"},
		{"own, started, disk unknown", two, learner(3, true, false), machine(No, Unknown), "m3", Remove, "no join is at work on m3"},
		{"own, cannot be asked", two, learner(3, true, false), machine(Unknown, Unknown), "m3", Wait, "m3 does not say whether a join"},
		{"own, a join at work", two, learner(3, true, true), machine(Yes, No), "m3", Wait, "a join is at work on m3"},
		// Learners at another address.
		{"other's, a join at work", two, learner(3, true, true), machine(Yes, Yes), "m4", Wait, "a join is at work on m3"},
		{"other's, a join at work, not started yet", two, learner(3, false, false), machine(Yes, No), "m4", Wait, "a join is at work on m3"},
		{"other's, cannot be asked", two, learner(3, true, false), machine(Unknown, Unknown), "m4", Wait, "m3 does not say whether a join"},
		{"other's, no join", two, learner(3, true, false), machine(No, Yes), "m4", Remove, "no join is at work on m3"},
		{"other's, no join, disk unknown", two, learner(3, true, false), machine(No, Unknown), "m4", Remove, "no join is at work on m3"},
		{"nobody's", two, learner(3, false, false), nil, "m4", Remove, "no machine of the lab has its peer URL"},
		{"nobody's, without a quorum to remove it", []Status{voter(1, true), voter(2, false)}, learner(3, false, false), nil, "m4", Stop, "1 of 2 voters are healthy"},
		// At rest nobody joins.
		{"at rest, no join", two, learner(3, false, false), machine(No, No), "", Remove, "no join is at work on m3"},
		{"at rest, a join at work", two, learner(3, false, false), machine(Yes, No), "", Wait, "a join is at work on m3"},
		{"at rest, cannot be asked", two, learner(3, false, false), machine(Unknown, No), "", Wait, "m3 does not say"},
		{"at rest, a voter without its disk", two, voter(3, false), machine(No, No), "", Keep, "never removed"},
		// Voters at the joiner's own address.
		{"own voter, disk empty", two, voter(3, false), machine(No, No), "m3", Remove, "m3 has lost what this voter had stored"},
		{"own voter, disk empty, no quorum left", []Status{voter(1, true), voter(2, false)}, voter(3, false), machine(No, No), "m3", Stop, "removing etcd member m3 (3) is refused: 1 of 3"},
		{"own voter, disk empty, one of two", []Status{voter(1, true)}, voter(3, false), machine(No, No), "m3", Stop, "1 of 2 voters are healthy"},
		{"own voter, the last one", nil, voter(3, false), machine(No, No), "m3", Stop, "it is the last voter"},
		{"own voter, disk has it", two, voter(3, false), machine(No, Yes), "m3", Keep, "m3 still has its data"},
		{"own voter, disk unknown", two, voter(3, false), machine(No, Unknown), "m3", Stop, "m3 does not say"},
		{"own voter that answers without a disk", two, voter(3, true), machine(No, No), "m3", Stop, "it answers"},
		{"own voter, a join at work", two, voter(3, false), machine(Yes, No), "m3", Wait, "a join is at work"},
		{"own voter, perhaps a join at work", two, voter(3, false), machine(Unknown, No), "m3", Wait, "m3 does not say"},
		// Any other voter.
		{"other's voter, down, disk empty", two, voter(3, false), machine(No, No), "m4", Keep, "never removed"},
		{"nobody's voter, down", two, voter(3, false), nil, "m4", Keep, "never removed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			machines := []Machine{{Name: "m1", PeerURL: "https://m1:2380", Joining: No, Data: Yes}, {Name: "m4", PeerURL: "https://m4:2380", Joining: No, Data: No}}
			if tt.machine != nil {
				machines = append(machines, *tt.machine)
			}
			verdicts := Judge(append(tt.others[:len(tt.others):len(tt.others)], tt.status), machines, tt.joiner)
			got := verdicts[len(verdicts)-1]
			if got.Action != tt.want || !strings.Contains(got.Reason, tt.says) || got.Member.ID != 3 {
				t.Errorf("got %s, because %s; want %s, because %s", got.Action, got.Reason, tt.want, tt.says)
			}
			if (got.Machine == "m3") != (tt.machine != nil) {
				t.Errorf("it is said to be of %q", got.Machine)
			}
			for _, v := range verdicts[:len(tt.others)] {
				if v.Action != Keep {
					t.Errorf("voter %s: %s, because %s", v.Member, v.Action, v.Reason)
				}
			}
		})
	}
}

func TestNextRemoval(t *testing.T) {
	voter, learner, second := member(1), member(2), member(3)
	learner.Learner, second.Learner = true, true
	tests := []struct {
		name     string
		verdicts []Verdict
		want     uint64
	}{
		{"none", []Verdict{{Member: voter, Action: Keep}, {Member: learner, Action: Wait}, {Member: second, Action: Stop}}, 0},
		{"a learner before a voter", []Verdict{{Member: voter, Action: Remove}, {Member: learner, Action: Remove}}, 2},
		{"the first learner", []Verdict{{Member: learner, Action: Remove}, {Member: second, Action: Remove}}, 2},
		{"a voter when it is all", []Verdict{{Member: voter, Action: Remove}, {Member: learner, Action: Wait}}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got uint64
			if v := NextRemoval(tt.verdicts); v != nil {
				got = v.Member.ID
			}
			if got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestHasQuorum(t *testing.T) {
	for states, want := range map[string]bool{
		"h": true, "d": false, "hh": true, "hd": false, "hhd": true, "hdd": false, "hhdd": false,
		"hdH": false, "hhdDD": true, "H": false, "": false,
	} {
		if got := HasQuorum(voters(states)); got != want {
			t.Errorf("%q: got %v", states, got)
		}
	}
}
