package main

import (
	"bytes"
	"testing"

	"k8slab/lab/golden"
	"k8slab/scenarios"
)

func TestPrintSoak(t *testing.T) {
	round := func(text string) scenarios.Round {
		r, err := scenarios.ParseRound(text)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	passed := scenarios.Result{Fault: "missing-cni", Node: "w1", Class: scenarios.Passed, Symptom: "cni-not-initialized", ToEffect: 0.1, ToCause: 1.5, ToRecover: 8.04, Seconds: 20}
	failed := scenarios.Result{Fault: "stale-cni+stale-learner", Node: "w2+cp3", Class: scenarios.Failed, Seconds: 61.2, Reason: "labctl repair: exit status 1:\n1 left"}
	rounds := []scenarios.Round{round("missing-cni@w1"), round("stale-cni@w2+stale-learner@cp3")}
	tests := []struct {
		name string
		soak scenarios.Soaked
	}{
		{"recovered", scenarios.Soaked{Seed: 3, First: 1, Rounds: rounds[:1], Results: []scenarios.Result{passed}, Recovered: 1, AtLeast: 0.05}},
		{"confident", scenarios.Soaked{Seed: 3, First: 1, Rounds: make([]scenarios.Round, 20), Results: []scenarios.Result{passed}, Recovered: 20, AtLeast: 0.861}},
		{"shortened", scenarios.Soaked{Seed: 3, First: 11, Rounds: rounds, Results: []scenarios.Result{passed, failed}, Recovered: 1, Unrecovered: 1,
			Shortest: rounds[1:], Reproduced: true, Replayed: []scenarios.Result{failed}}},
		{"once", scenarios.Soaked{Seed: 3, First: 11, Rounds: rounds, Results: []scenarios.Result{passed, failed}, Recovered: 1, Unrecovered: 1,
			Shortest: rounds, Replayed: []scenarios.Result{passed, passed, passed}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			printSoak(&out, tt.soak)
			golden.Check(t, "soak-"+tt.name+".txt", out.String())
		})
	}
}
