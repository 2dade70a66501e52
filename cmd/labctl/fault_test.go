package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8slab/scenarios"
)

// What is refused until a person has acted must not be offered as the way out.
func TestAdvice(t *testing.T) {
	for name, want := range map[string]string{
		"missing-cni": "end it with `labctl repair`",
		"port-in-use": "`labctl join w1` is refused until",

		"registry-rate-limited": "`labctl diagnose`, which says how to end it",
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

// Nobody breaks a cluster that labctl did not make without naming it, and nobody what it cannot get back.
func TestBreakingIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	text := "name: home\nmachines: ssh\nkubernetes: {version: v1.35.4}\nnodes: [{name: cp1, role: control-plane, ip: 192.168.4.61}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"fault run missing-cni", "--i-break home"},
		{"fault inject missing-cni", "--i-break home"},
		{"fault run missing-cni --i-break other", "--i-break home"},
		{"fault run quorum-lost --i-break home", "quorum-lost is only for labs: it loses data"},
		{"fault inject worker-suspended --i-break home", "power over the machine"},
		{"fault run missing-cni+wiped-voter@cp1 --i-break home", "wiped-voter is only for labs"},
		{"soak", "machines: ssh"},
	} {
		var out, errs strings.Builder
		if code := run(append([]string{"-c", file}, strings.Fields(c.args)...), nil, &out, &errs); code != exitUsage || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%s: %d, %s", c.args, code, &errs)
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
