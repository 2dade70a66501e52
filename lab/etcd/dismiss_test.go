package etcd

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// threeVoters serves members 1 to 3, of which the third leaves when it is removed.
func threeVoters(f *fakeRemote) {
	members := []Member{member(1), member(2), member(3)}
	f.cluster(1, members...)
	f.removals[at(1)+" 3"] = nil
	f.lists[at(1)] = func(context.Context) ([]Member, error) {
		if slices.Contains(f.calls, "remove "+at(1)+" 3") {
			return members[:2], nil
		}
		return members, nil
	}
}

func TestDismiss(t *testing.T) {
	none := func(Member) error { return nil }
	tests := []struct {
		name    string
		peer    string
		arrange func(*fakeRemote)
		before  func(Member) error
		removed bool
		err     string
	}{
		{"the one of the machine", "https://m3:2380", nil, none, true, ""},
		{"none there", "https://m4:2380", nil, func(m Member) error { return errors.New("asked about " + m.Name) }, false, ""},
		{"what comes before fails", "https://m3:2380", nil, func(m Member) error { return errors.New("no space to save " + m.Name) }, false, "no space to save m3"},
		{"the quorum would be lost", "https://m3:2380", func(f *fakeRemote) { f.down(2) }, none, false, "1 of the 2 voters left would be healthy"},
		{"it says yes and does nothing", "https://m3:2380", func(f *fakeRemote) { f.cluster(1, member(1), member(2), member(3)) }, none, true, "m3 (3) was removed and is there again"},
		{"nobody lists", "https://m3:2380", func(f *fakeRemote) { f.down(1) }, none, false, "m1 is off"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t)
			threeVoters(f)
			if tt.arrange != nil {
				tt.arrange(f)
			}
			removed, err := Dismiss(t.Context(), f.client(nil, at(1)), tt.peer, tt.before)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if (removed != nil) != tt.removed || removed != nil && removed.ID != 3 {
				t.Errorf("removed %v", removed)
			}
			asked := len(slices.DeleteFunc(slices.Clone(f.calls), func(call string) bool { return !strings.HasPrefix(call, "remove ") }))
			if (asked == 1) != tt.removed || asked > 1 {
				t.Errorf("calls %q", f.calls)
			}
		})
	}
}
