package etcd

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMembersPrefersWhoAnswers(t *testing.T) {
	f := newFake(t)
	f.cluster(2, member(1), member(2))
	f.down(1)
	c := f.client(nil, at(1), at(2))
	for range 2 {
		if members, err := c.Members(t.Context()); err != nil || len(members) != 2 {
			t.Fatalf("members %v, error %v", members, err)
		}
	}
	want := []string{"members " + at(1), "members " + at(2), "members " + at(2)}
	if !slices.Equal(f.calls, want) {
		t.Errorf("calls %q, want %q", f.calls, want)
	}
}

func TestMembersNamesEveryFailure(t *testing.T) {
	f := newFake(t)
	f.down(1)
	f.down(2)
	_, err := f.client(nil, at(1), at(2)).Members(t.Context())
	want := "list etcd members: at https://m1:2379: m1 is off; at https://m2:2379: m2 is off"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestCallsEnd(t *testing.T) {
	hang := func(ctx context.Context) ([]Member, error) { <-ctx.Done(); return nil, ctx.Err() }
	tests := map[string]func(c *Client, cancel func()){
		"by their timeout": func(c *Client, _ func()) { c.timeout = 20 * time.Millisecond },
		"with the context": func(_ *Client, cancel func()) { time.AfterFunc(20*time.Millisecond, cancel) },
		"on close":         func(c *Client, _ func()) { time.AfterFunc(20*time.Millisecond, func() { c.Close() }) },
	}
	for name, arrange := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.lists[at(1)] = hang
			c := f.client(nil, at(1))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			arrange(c, cancel)
			start := time.Now()
			if _, err := c.Members(ctx); err == nil {
				t.Error("no error")
			}
			if spent := time.Since(start); spent > 2*time.Second {
				t.Errorf("took %s", spent)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	f := newFake(t)
	learner, unstarted := member(4), Member{ID: 5, PeerURLs: []string{"https://m5:2380"}}
	learner.Learner = true
	f.cluster(1, member(1), member(2), member(3), learner, unstarted)
	f.answer(1, answer{id: 1, leader: 1, index: 9, applied: 8, term: 2, dbSize: 7, version: "3.6.8", errors: []string{"alarm"}})
	f.down(2)
	f.answer(3, answer{id: 33, leader: 1})
	statuses, err := f.client(nil, at(1)).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wants := []struct {
		healthy bool
		state   State
		err     string
	}{{true, Serving, ""}, {false, Silent, "m2 is off"}, {false, Displaced, "another member, 21"}, {true, Serving, ""}, {false, NotStarted, "has not started"}}
	for i, want := range wants {
		s := statuses[i]
		if s.Healthy != want.healthy || s.State != want.state || (s.Err == nil) != want.healthy || s.Err != nil && !strings.Contains(s.Err.Error(), want.err) {
			t.Errorf("member %s: healthy %v, error %v, want %+v", s.Member, s.Healthy, s.Err, want)
		}
	}
	s := statuses[0]
	if !s.Leader || s.LeaderID != 1 || s.RaftIndex != 9 || s.RaftApplied != 8 || s.RaftTerm != 2 || s.DBSize != 7 || s.Version != "3.6.8" || !slices.Equal(s.Errors, []string{"alarm"}) {
		t.Errorf("status %+v", s)
	}
	if statuses[3].Leader {
		t.Error("a follower is called leader")
	}
}

// An election is no failure: the members are asked again until they have a leader.
func TestStatusDuringAnElection(t *testing.T) {
	for name, first := range map[string]map[uint64]uint64{ // the leader that each member names
		"some know it":        {1: 1, 2: 3, 3: 3},
		"the old one stepped": {1: 0, 2: 1, 3: 1},
	} {
		f := newFake(t)
		f.cluster(3, member(1), member(2), member(3))
		for id, leader := range first {
			asked := 0
			f.statuses[at(id)] = func(context.Context) (answer, error) {
				if asked++; asked == 1 {
					return answer{id: id, leader: leader}, nil
				}
				return answer{id: id, leader: 3}, nil
			}
		}
		if err := f.client(nil, at(1)).Healthy(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Members that are only cut off from the leader are not waited for.
func TestElecting(t *testing.T) {
	status := func(id, leader uint64) Status {
		s := Status{Member: member(id), LeaderID: leader, Leader: id == leader, Healthy: leader != 0, State: Serving}
		if leader == 0 {
			s.State = Leaderless
		}
		return s
	}
	silent := Status{Member: member(1), State: Silent}
	for name, tt := range map[string]struct {
		of   []Status
		want bool
	}{
		"all agree":            {[]Status{status(1, 1), status(2, 1), status(3, 1)}, false},
		"two leaders":          {[]Status{status(1, 1), status(2, 3), status(3, 3)}, true},
		"one is cut off":       {[]Status{status(1, 1), status(2, 1), status(3, 0)}, false},
		"the leader is gone":   {[]Status{silent, status(2, 1), status(3, 1)}, false},
		"the leader stepped":   {[]Status{status(1, 0), status(2, 1), status(3, 1)}, true},
		"nobody knows any":     {[]Status{silent, status(2, 0), status(3, 0)}, false},
		"it leads for another": {[]Status{status(1, 2), status(2, 1)}, true},
	} {
		if got := electing(tt.of); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestStatusTriesNextURL(t *testing.T) {
	f := newFake(t)
	m := member(1)
	m.ClientURLs = []string{at(9), at(1)}
	f.cluster(1, m)
	f.down(9)
	statuses, err := f.client(nil, at(1)).Status(t.Context())
	if err != nil || !statuses[0].Healthy {
		t.Errorf("status %+v, error %v", statuses, err)
	}
}

func TestHealthy(t *testing.T) {
	tests := []struct {
		name    string
		arrange func(f *fakeRemote)
		want    []string // parts of the error; none for no error
	}{
		{"all well", func(*fakeRemote) {}, nil},
		{"one down", func(f *fakeRemote) { f.down(2) }, []string{"member m2 (2): ask https://m2:2379 for its status: m2 is off"}},
		{"one without leader", func(f *fakeRemote) { f.answer(3, answer{id: 3}) }, []string{"member m3 (3): knows no leader"}},
		{"two leaders", func(f *fakeRemote) { f.answer(3, answer{id: 3, leader: 3}) },
			[]string{"members disagree on the leader: m1 (1) says 1, m3 (3) says 3"}},
		{"leader from elsewhere", func(f *fakeRemote) {
			for id := range uint64(3) {
				f.answer(id+1, answer{id: id + 1, leader: 9})
			}
		}, []string{"the leader 9 is not a member"}},
		{"alarm seen by all", func(f *fakeRemote) {
			for id := range uint64(3) {
				f.answer(id+1, answer{id: id + 1, leader: 1, errors: []string{"memberID:2 alarm:NOSPACE"}})
			}
		}, []string{"etcd is not healthy: memberID:2 alarm:NOSPACE (reported by m1 (1))"}},
		{"a learner", func(f *fakeRemote) {
			l := member(3)
			l.Learner = true
			f.cluster(1, member(1), member(2), l)
		}, []string{"member m3 (3): is a learner"}},
		{"an unstarted member and one down", func(f *fakeRemote) {
			f.cluster(1, member(1), member(2), Member{ID: 10, PeerURLs: []string{"https://new:2380"}})
			f.down(2)
		}, []string{"member m2 (2): ask", "; member a at [https://new:2380]: has not started"}},
		{"no members", func(f *fakeRemote) {
			f.cluster(1, member(1))
			f.lists[at(1)] = func(context.Context) ([]Member, error) { return nil, nil }
		},
			[]string{"it has no members"}},
		{"no list", func(f *fakeRemote) { f.down(1) }, []string{"list etcd members"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t)
			f.cluster(1, member(1), member(2), member(3))
			tt.arrange(f)
			err := f.client(nil, at(1)).Healthy(t.Context())
			if (err == nil) != (len(tt.want) == 0) {
				t.Fatalf("error %v, want %q", err, tt.want)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %v lacks %q", err, part)
				}
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	pki := newPKI(t)
	good := Config{Endpoints: []string{"https://m1:2379"}, CA: pki.ca, Cert: pki.cert, Key: pki.key, Dial: noDial}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	tests := map[string]func(*Config){
		"no endpoints":        func(c *Config) { c.Endpoints = nil },
		"is not https":        func(c *Config) { c.Endpoints = []string{"http://m1:2379"} },
		"is not https://host": func(c *Config) { c.Endpoints = []string{"https://m1"} },
		"no dial function":    func(c *Config) { c.Dial = nil },
		"client certificate":  func(c *Config) { c.Cert = nil },
		"ca certificate":      func(c *Config) { c.CA = []byte("text") },
	}
	for want, spoil := range tests {
		cfg := good
		spoil(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestLocalStatusAsksNoQuorum(t *testing.T) {
	f := newFake(t)
	f.cluster(0, member(1), member(2))
	f.down(2)
	f.memories[at(1)] = f.lists[at(1)]
	statuses, err := f.client(nil, at(1)).LocalStatus(t.Context())
	if err != nil || len(statuses) != 2 || statuses[0].RaftTerm != 2 || HasQuorum(statuses) {
		t.Errorf("statuses %+v, error %v", statuses, err)
	}
}

func TestAlarmsHaveOwners(t *testing.T) {
	f := newFake(t)
	f.cluster(1, member(1), member(2))
	for id := range uint64(2) {
		f.answer(id+1, answer{id: id + 1, leader: 1, errors: []string{
			"memberID:2 alarm:NOSPACE", "memberID:2 alarm:CORRUPT", "memberID:9 alarm:NOSPACE", "memberID:x alarm:NOSPACE", "etcdserver: no leader",
		}})
	}
	statuses, err := f.client(nil, at(1)).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(statuses[0].Alarms) > 0 || !slices.Equal(statuses[1].Alarms, []string{"NOSPACE", "CORRUPT"}) {
		t.Errorf("alarms %q and %q", statuses[0].Alarms, statuses[1].Alarms)
	}
}

var errOff = errors.New("machine is off")

// An election while a member is asked is no reason to fail: it is asked again. One after another without an end is.
func TestLeaderChangesWhileMembersAreListed(t *testing.T) {
	for changes, ok := range map[int]bool{0: true, 1: true, 2: true, 3: false} {
		f := newFake(t)
		left := changes
		f.lists[at(1)] = func(context.Context) ([]Member, error) {
			if left--; left >= 0 {
				return nil, errLeaderChanged
			}
			return []Member{member(1)}, nil
		}
		members, err := f.client(nil, at(1)).Members(t.Context())
		if (err == nil) != ok || (len(members) == 1) != ok {
			t.Errorf("%d changes: %v, %v", changes, members, err)
		}
	}
}
