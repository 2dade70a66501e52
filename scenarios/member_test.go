package scenarios

import (
	"context"
	"errors"
	"strings"
	"testing"
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
		{"no member answers", memberDown, refused, true},
		{"a member answers", memberDown, answering{}, false},
		{"a learner is listed", learnerKnown, learner(members, "true"), true},
		{"no learner is listed", learnerKnown, learner(members, "false"), false},
		{"nobody lists", learnerKnown, refused, false},
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
