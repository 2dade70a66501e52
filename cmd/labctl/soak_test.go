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
	passed := scenarios.Result{Fault: "missing-cni", Node: "w1", Class: scenarios.Passed, Detected: scenarios.Detection{Cause: "cni-not-initialized"}, ToEffect: 0.1, ToCause: 1.5, ToRecover: 8.04, Seconds: 20}
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

func TestPrintDamageSoak(t *testing.T) {
	named := scenarios.Damaged{Round: 4, Damage: scenarios.Damage{Kind: "file", How: "halve", Node: "w1", What: "/usr/bin/runc"}, Class: scenarios.Passed,
		Named: scenarios.Named, Healed: scenarios.Healed, By: "labctl repair --up-to recreate", Restored: true, ToName: 1.52, ToHeal: 8.04}
	harmless := scenarios.Damaged{Round: 5, Damage: scenarios.Damage{Kind: "object", How: "delete", What: "lease/kube-system/kube-scheduler"},
		Class: scenarios.Passed, Named: scenarios.Harmless, Restored: true, ToName: 40}
	stuck := scenarios.Damaged{Round: 6, Damage: scenarios.Damage{Kind: "unit", How: "mask", Node: "cp2", What: "containerd.service"}, Components: []scenarios.Component{"containerd"},
		Class: scenarios.Failed, Named: scenarios.Misnamed, Healed: scenarios.DeadEnd, Said: []string{"kubelet-not-running on cp2: exit status 1"},
		Reason: "after labctl up:\nthe lab is not healthy with --token abcdef.0123456789abcdef"}
	tests := []struct {
		name string
		soak scenarios.DamageSoaked
	}{
		{"healed", scenarios.DamageSoaked{Seed: 3, First: 4, Rounds: []scenarios.Damaged{named, harmless},
			Score: scenarios.Score{Rounds: 2, Named: 1, Healed: 1, Harmless: 1, NamedShare: 1, HealedShare: 1}}},
		{"missed", scenarios.DamageSoaked{Seed: 3, First: 4, Rounds: []scenarios.Damaged{named, harmless, stuck}, Shortest: []int{4, 6}, Reproduced: true, Replayed: []scenarios.Damaged{stuck},
			Score: scenarios.Score{Rounds: 3, Named: 1, Misnamed: 1, Healed: 1, DeadEnds: 1, Harmless: 1, NamedShare: 0.5, HealedShare: 0.5}}},
		{"unreproduced", scenarios.DamageSoaked{Seed: 3, First: 6, Rounds: []scenarios.Damaged{stuck}, Shortest: []int{6}, Score: scenarios.Score{Rounds: 1, Misnamed: 1, DeadEnds: 1}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			printDamageSoak(&out, tt.soak)
			golden.Check(t, "soak-damage-"+tt.name+".txt", out.String())
		})
	}
}
