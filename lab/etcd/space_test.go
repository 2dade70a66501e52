package etcd

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// crampedCluster has three members, the first of which leads and the second of which has no space.
func crampedCluster(t *testing.T) *fakeRemote {
	f := newFake(t)
	var members []Member
	for id := uint64(1); id <= 3; id++ {
		members = append(members, member(id))
	}
	for _, m := range members {
		f.lists[m.ClientURLs[0]] = func(context.Context) ([]Member, error) { return members, nil }
		f.statuses[m.ClientURLs[0]] = func(context.Context) (answer, error) {
			return answer{id: m.ID, leader: 1, errors: []string{"memberID:2 alarm:NOSPACE"}}, nil
		}
	}
	return f
}

// changesOf are the calls that change something, in order, with the members' numbers for their endpoints.
func changesOf(f *fakeRemote) (all []string) {
	for _, call := range f.calls {
		if !strings.HasPrefix(call, "status") && !strings.HasPrefix(call, "members") {
			all = append(all, call)
		}
	}
	return all
}

// The leader's database is rewritten last, and the alarm goes when all are.
func TestRelieve(t *testing.T) {
	f := crampedCluster(t)
	at := func(id uint64) string { return member(id).ClientURLs[0] }
	c := newClient(f, []string{at(1)}, nil)
	if err := c.Relieve(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"compact " + at(2), "defragment " + at(2), "defragment " + at(3), "defragment " + at(1), "disarm " + at(2) + " 2"}
	if got := changesOf(f); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A member that cannot rewrite its database keeps the alarm, and the members after it keep serving.
func TestRelieveStopsAtAFailure(t *testing.T) {
	f := crampedCluster(t)
	second := member(2).ClientURLs[0]
	f.space = map[string]error{"defragment " + second: errors.New("no space left on device")}
	err := newClient(f, []string{second}, nil).Relieve(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no space left on device") || len(changesOf(f)) != 2 {
		t.Errorf("%v, %q", err, changesOf(f))
	}
}

// Without the alarm nothing is done.
func TestRelieveOfNothing(t *testing.T) {
	f := crampedCluster(t)
	for at := range f.statuses {
		f.statuses[at] = func(context.Context) (answer, error) { return answer{id: 1, leader: 1}, nil }
	}
	if err := newClient(f, []string{member(1).ClientURLs[0]}, nil).Relieve(t.Context()); err != nil || len(changesOf(f)) > 0 {
		t.Errorf("%v, %q", err, changesOf(f))
	}
}

// A change that is refused is not asked for.
func TestRefusedChanges(t *testing.T) {
	why := errors.New("this command only looks")
	f := crampedCluster(t)
	c := newClient(f, []string{member(1).ClientURLs[0]}, func(string) error { return why })
	for what, err := range map[string]error{"relieve": c.Relieve(t.Context()), "remove": c.Remove(t.Context(), 3)} {
		if !errors.Is(err, why) || len(changesOf(f)) > 0 {
			t.Errorf("%s: %v, %q", what, err, changesOf(f))
		}
	}
}
