package scenarios

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// answering are hands to which every command says the same.
type answering struct {
	out string
	err error
}

func (a answering) Run(context.Context, string, ...string) (string, error) { return a.out, a.err }
func (a answering) Labctl(context.Context, ...string) (string, error)      { return a.out, a.err }

func TestWhatBitesOfEtcd(t *testing.T) {
	const members = `{"members":[{"ID":1,"name":"cp1"},{"ID":2,"name":"cp2"},{"ID":3,"name":"cp3","isLearner":LEARNER}]}`
	const unnamed = `{"members":[{"ID":1,"name":"cp1"},{"ID":3,"isLearner":LEARNER}]}`
	learner := func(text, is string) answering { return answering{out: strings.ReplaceAll(text, "LEARNER", is)} }
	refused := answering{err: errors.New("connection refused")}
	tests := []struct {
		name  string
		asks  func(context.Context, Site) error
		hands answering
		bites bool
	}{
		{"nobody can ask", memberDown, refused, false},
		{"a member answers", memberDown, answering{}, false},
		{"the member learns", learns, learner(members, "true"), true},
		{"the member votes", learns, learner(members, "false"), false},
		{"the member has not started", learns, learner(unnamed, "true"), false},
		{"the node's member votes", func(ctx context.Context, s Site) error { return s.votes(ctx) }, learner(members, "false"), true},
		{"the node's member is a learner", func(ctx context.Context, s Site) error { return s.votes(ctx) }, learner(members, "true"), false},
		{"the join failed", joinFailed, answering{out: `{"joinUnit":"inactive","outcome":{"joined":false}}`}, true},
		{"the join is at work", joinFailed, answering{out: `{"joinUnit":"active"}`}, false},
		{"the join succeeded", joinFailed, answering{out: `{"joinUnit":"inactive","outcome":{"joined":true}}`}, false},
		{"the answer was sent again", slowAnswers, answering{out: "https://10.0.0.9:2379 is healthy: successfully committed proposal: took = 412.5ms\n"}, true},
		{"the answer was lost", slowAnswers, refused, true},
		{"the answer came at once", slowAnswers, answering{out: "https://10.0.0.9:2379 is healthy: successfully committed proposal: took = 9.1ms\n"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.asks(t.Context(), Site{Hands: tt.hands, Node: "cp3", Address: "10.0.0.9", ControlPlane: "cp1"})
			if (err == nil) != tt.bites {
				t.Error(err)
			}
		})
	}
}

// asking are hands with which cp1 asks its own etcd, and cp3's.
type asking struct {
	own, other error
	called     []string
}

func (a *asking) Run(_ context.Context, _ string, argv ...string) (string, error) {
	if slices.Contains(argv, "https://127.0.0.1:2379") {
		return "", a.own
	}
	return "", a.other
}

func (a *asking) Labctl(_ context.Context, args ...string) (string, error) {
	a.called = append(a.called, strings.Join(args, " "))
	return "", nil
}

// A member is down when another control plane, which can ask, gets no answer. One that is not proven down is never made anew.
func TestMemberDown(t *testing.T) {
	lost := errors.New("connection lost")
	for _, tt := range []struct {
		name       string
		own, other error
		down       bool
		calls      string
	}{
		{"healthy", nil, nil, false, ""},
		{"down", nil, lost, true, "rejoin cp3"},
		{"nobody can ask", lost, lost, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hands := &asking{own: tt.own, other: tt.other}
				s := Site{Hands: hands, Node: "cp3", Address: "10.0.0.9", ControlPlane: "cp1"}
				if err := memberDown(t.Context(), s); (err == nil) != tt.down {
					t.Error(err)
				}
				err := etcdDataCorrupt.Restore(t.Context(), s)
				if got := strings.Join(hands.called, "; "); got != tt.calls || (err != nil) != (tt.own != nil) {
					t.Errorf("restore called %q: %v", got, err)
				}
			})
		})
	}
}
