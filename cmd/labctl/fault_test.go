package main

import (
	"context"
	"strings"
	"testing"

	"k8slab/scenarios"
)

// What is refused until a person has acted must not be offered as the way out.
func TestAdvice(t *testing.T) {
	for name, want := range map[string]string{
		"missing-cni": "end it with `labctl repair`",
		"port-in-use": "`labctl join w1` is refused until",
	} {
		f, err := faultOf(name)
		if err != nil {
			t.Fatal(err)
		}
		got := advice(f, "w1")
		if !strings.Contains(got, want) || !strings.Contains(got, "labctl fault restore") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// told is a driver that keeps what it is asked to run.
type told struct{ ran []string }

func (d *told) Run(_ context.Context, node string, argv ...string) (string, error) {
	d.ran = append(d.ran, node+": "+strings.Join(argv, " "))
	return "", nil
}

func (d *told) Labctl(context.Context, ...string) (string, error) {
	return `{"nodes": [{"name": "w1", "role": "worker"}]}`, nil
}

// `labctl fault restore` undoes also what a soak of damage left.
func TestUndoOfDamage(t *testing.T) {
	d := &told{}
	left := scenarios.Injected{Fault: "damage", Node: "w1", Damage: scenarios.Damage{Kind: "unit", How: "mask", Node: "w1", What: "kubelet.service"}}
	if err := undo(t.Context(), d, left); err != nil || len(d.ran) != 1 || !strings.Contains(d.ran[0], "w1: sh -ec systemctl unmask") || !strings.HasSuffix(d.ran[0], " kubelet.service") {
		t.Errorf("%v, ran %q", err, d.ran)
	}
	left.Damage.Kind = "of a later version"
	if err := undo(t.Context(), d, left); err == nil || !strings.Contains(err.Error(), "faults.json") {
		t.Errorf("got %v", err)
	}
}
