package etcd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
)

// fakeRemote is a set of endpoints that answer only what they were told to; any
// other call fails the test.
type fakeRemote struct {
	late     int // removals without an answer before the first with one
	early    int // removals that come too early before them
	t        *testing.T
	lists    map[string]func(ctx context.Context) ([]Member, error)
	statuses map[string]func(ctx context.Context) (answer, error)
	removals map[string]error // by "endpoint id"
	memories map[string]func(ctx context.Context) ([]Member, error)
	stores   map[string]func(ctx context.Context, w io.Writer) error // snapshots
	space    map[string]error                                        // of calls that fail

	mu    sync.Mutex
	calls []string
}

func newFake(t *testing.T) *fakeRemote {
	return &fakeRemote{
		t:        t,
		lists:    map[string]func(context.Context) ([]Member, error){},
		statuses: map[string]func(context.Context) (answer, error){},
		removals: map[string]error{},
		memories: map[string]func(context.Context) ([]Member, error){},
		stores:   map[string]func(context.Context, io.Writer) error{},
	}
}

func (f *fakeRemote) called(call string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
}

func (f *fakeRemote) members(ctx context.Context, endpoint string, local bool) ([]Member, error) {
	lists, call := f.lists, "members "
	if local {
		lists, call = f.memories, "remembered members "
	}
	f.called(call + endpoint)
	list, ok := lists[endpoint]
	if !ok {
		f.t.Errorf("unexpected member list at %s", endpoint)
		return nil, fmt.Errorf("not told")
	}
	return list(ctx)
}

func (f *fakeRemote) status(ctx context.Context, endpoint string) (answer, error) {
	f.called("status " + endpoint)
	status, ok := f.statuses[endpoint]
	if !ok {
		f.t.Errorf("unexpected status at %s", endpoint)
		return answer{}, fmt.Errorf("not told")
	}
	return status(ctx)
}

func (f *fakeRemote) lead(_ context.Context, endpoint string, to uint64) error {
	f.called(fmt.Sprintf("lead %s %d", endpoint, to))
	return nil
}

func (f *fakeRemote) remove(_ context.Context, endpoint string, id uint64) error {
	call := fmt.Sprintf("%s %d", endpoint, id)
	f.called("remove " + call)
	if f.early > 0 {
		f.early--
		return errUnsettled
	}
	if f.late > 0 {
		f.late--
		return context.DeadlineExceeded
	}
	err, ok := f.removals[call]
	if !ok {
		f.t.Errorf("unexpected removal %s", call)
		return fmt.Errorf("not told")
	}
	return err
}

func (f *fakeRemote) snapshot(ctx context.Context, endpoint string, w io.Writer) error {
	f.called("snapshot " + endpoint)
	store, ok := f.stores[endpoint]
	if !ok {
		f.t.Errorf("unexpected snapshot of %s", endpoint)
		return fmt.Errorf("not told")
	}
	return store(ctx, w)
}

// member is a started voter "m<id>" at "https://m<id>:2379".
func member(id uint64) Member {
	return Member{ID: id, Name: fmt.Sprintf("m%d", id), Started: true,
		PeerURLs: []string{fmt.Sprintf("https://m%d:2380", id)}, ClientURLs: []string{at(id)}}
}

func at(id uint64) string { return fmt.Sprintf("https://m%d:2379", id) }

// cluster makes every member serve the list and answer as a follower of leader.
func (f *fakeRemote) cluster(leader uint64, members ...Member) {
	for _, m := range members {
		if !m.Started {
			continue
		}
		f.lists[at(m.ID)] = func(context.Context) ([]Member, error) { return slices.Clone(members), nil }
		f.answer(m.ID, answer{id: m.ID, leader: leader, term: 2, version: "3.6.8"})
	}
}

func (f *fakeRemote) answer(id uint64, a answer) {
	f.statuses[at(id)] = func(context.Context) (answer, error) { return a, nil }
}

func (f *fakeRemote) down(id uint64) {
	f.lists[at(id)] = func(context.Context) ([]Member, error) { return nil, fmt.Errorf("m%d is off", id) }
	f.statuses[at(id)] = func(context.Context) (answer, error) { return answer{}, fmt.Errorf("m%d is off", id) }
}

func (f *fakeRemote) client(mutated func(string) error, endpoints ...string) *Client {
	c := newClient(f, endpoints, mutated)
	f.t.Cleanup(func() { c.Close() })
	return c
}

// compact, defragment and disarm succeed, unless told otherwise.
func (f *fakeRemote) compact(_ context.Context, endpoint string) error {
	f.called("compact " + endpoint)
	return f.space["compact "+endpoint]
}

func (f *fakeRemote) defragment(_ context.Context, endpoint string) error {
	f.called("defragment " + endpoint)
	return f.space["defragment "+endpoint]
}

func (f *fakeRemote) disarm(_ context.Context, endpoint string, id uint64) error {
	call := fmt.Sprintf("disarm %s %d", endpoint, id)
	f.called(call)
	return f.space[call]
}
