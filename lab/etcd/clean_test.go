package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// stale serves members 1 to 3 and the learners, and forgets each that is removed.
func stale(f *fakeRemote, learners ...uint64) {
	members := []Member{member(1), member(2), member(3)}
	for _, id := range learners {
		l := member(id)
		l.Learner = true
		members = append(members, l)
		f.down(id)
	}
	f.cluster(1, members[:3]...)
	for i := range uint64(3) {
		f.lists[at(i+1)] = func(context.Context) ([]Member, error) {
			return slices.DeleteFunc(slices.Clone(members), func(m Member) bool {
				return slices.Contains(f.calls, fmt.Sprintf("remove %s %d", at(1), m.ID))
			}), nil
		}
	}
	for _, m := range members {
		f.removals[fmt.Sprintf("%s %d", at(1), m.ID)] = nil
	}
}

func ids(verdicts []Verdict) (out []uint64) {
	for _, v := range verdicts {
		out = append(out, v.Member.ID)
	}
	return out
}

func TestCleanRemovesOnePerPass(t *testing.T) {
	f := newFake(t)
	stale(f, 4, 5)
	passes := 0
	removed, left, err := f.client(nil, at(1)).Clean(t.Context(), CleanOptions{
		Machines: func(context.Context) ([]Machine, error) {
			passes++
			// A join begins on m5 once the other learner is gone: what was judged before does not hold any more.
			joining := No
			if passes > 1 {
				joining = Yes
			}
			return []Machine{{Name: "m5", PeerURL: "https://m5:2380", Joining: joining}}, nil
		},
	})
	if err != nil || !slices.Equal(ids(removed), []uint64{4}) || passes != 2 {
		t.Errorf("removed %v in %d passes, error %v", ids(removed), passes, err)
	}
	if !slices.Equal(ids(left), []uint64{1, 2, 3, 5}) || left[3].Action != Wait {
		t.Errorf("left %+v", left)
	}
}

func TestCleanForAJoiner(t *testing.T) {
	empty := []Machine{{Name: "m3", PeerURL: "https://m3:2380", Joining: No, Data: No}}
	none := func(context.Context, Verdict) error { return nil }
	tests := []struct {
		name    string
		arrange func(f *fakeRemote)
		before  func(context.Context, Verdict) error
		removed []uint64
		left    Action // of member 3, "" when it is gone
		err     string
	}{
		{"its wiped voter, after its learner", func(f *fakeRemote) { f.down(3) }, none, []uint64{4, 3}, "", ""},
		{"the quorum would be lost", func(f *fakeRemote) { f.down(3); f.down(2) }, none, nil, Stop, ""},
		{"what comes before fails", func(f *fakeRemote) { f.down(3) }, func(_ context.Context, v Verdict) error {
			if v.Member.Learner {
				return nil
			}
			return errors.New("no space")
		}, []uint64{4}, Remove, "before removing etcd member m3 (3): no space"},
		{"etcd refuses", func(f *fakeRemote) { f.down(3); f.removals[at(1)+" 4"] = errors.New("unhealthy") }, none, nil, Remove, "unhealthy"},
		{"no list", func(f *fakeRemote) { f.down(1) }, none, nil, "", "m1 is off"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t)
			stale(f, 4)
			tt.arrange(f)
			removed, left, err := f.client(nil, at(1)).Clean(t.Context(), CleanOptions{
				Joiner: "m3", Before: tt.before,
				Machines: func(context.Context) ([]Machine, error) { return empty, nil },
			})
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if !slices.Equal(ids(removed), tt.removed) {
				t.Errorf("removed %v, want %v", ids(removed), tt.removed)
			}
			var action Action
			for _, v := range left {
				if v.Member.ID == 3 {
					action = v.Action
				}
			}
			if action != tt.left {
				t.Errorf("m3 is left as %q, want %q", action, tt.left)
			}
		})
	}
}

// An etcd that says yes and does nothing must not be asked for ever.
func TestCleanEnds(t *testing.T) {
	f := newFake(t)
	l := member(4)
	l.Learner = true
	f.cluster(1, member(1), member(2), l)
	f.removals[at(1)+" 4"] = nil
	removed, _, err := f.client(nil, at(1)).Clean(t.Context(), CleanOptions{Machines: func(context.Context) ([]Machine, error) { return nil, nil }})
	if err == nil || !strings.Contains(err.Error(), "still lists it") || len(removed) != 1 {
		t.Errorf("removed %v, error %v", ids(removed), err)
	}
}

func TestCleanKnowsNoMachines(t *testing.T) {
	f := newFake(t)
	why := errors.New("libvirt is silent")
	_, _, err := f.client(nil, at(1)).Clean(t.Context(), CleanOptions{Machines: func(context.Context) ([]Machine, error) { return nil, why }})
	if !errors.Is(err, why) || len(f.calls) > 0 {
		t.Errorf("error %v after %q", err, f.calls)
	}
}
