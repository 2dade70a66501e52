package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"k8slab/lab/golden"
	"k8slab/scenarios"
)

func TestBenchUsage(t *testing.T) {
	alone(t)
	for _, tt := range []struct {
		args, want string
	}{
		{"bench missing-cnni", "missing-cni"},
		{"bench --budget 0s", "--budget must be at least 1s"},
		{"bench --with= missing-cni", "--with needs a command"},
		{"bench upgrade-etcd-flag-removed", "labctl fault run upgrade-etcd-flag-removed"},
		{"bench --anew --lab small", "--anew removes the lab"},
	} {
		if status, _, stderr := labctl(t, strings.Fields(tt.args)...); status != exitUsage || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: %d, %s", tt.args, status, stderr)
		}
	}
}

// What a class of results makes of the exit status, as docs/commands.md says.
func TestExitOfExperiments(t *testing.T) {
	page, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []struct {
		name   string
		failed func(scenarios.Result) bool
		rows   [2][]scenarios.Class // with status 0, with status 1
	}{
		{"labctl fault run", notPassed, [2][]scenarios.Class{{scenarios.Passed, scenarios.NotApplicable}, {scenarios.Failed, scenarios.SetupFailed}}},
		{"labctl bench", notMeasured, [2][]scenarios.Class{{scenarios.Passed, scenarios.Failed, scenarios.NotApplicable}, {scenarios.SetupFailed}}},
	} {
		var cells []string
		for status, classes := range command.rows {
			var names []string
			for _, c := range classes {
				names = append(names, "`"+string(c)+"`")
				if got := command.failed(scenarios.Result{Class: c}); got != (status == exitFailed) {
					t.Errorf("%s: that %s makes the status 1 is %v", command.name, c, got)
				}
			}
			cells = append(cells, strings.Join(names, ", "))
		}
		if row := "| `" + command.name + "` | " + strings.Join(cells, " | ") + " |"; !strings.Contains(string(page), row) {
			t.Errorf("docs/commands.md lacks %s", row)
		}
	}
}

func TestPrintBench(t *testing.T) {
	none, two := 0, 2
	intact := scenarios.Data{Lost: []string{}, LostWrites: &none, Writes: 20, WriteGap: 0.12}
	right := scenarios.Detection{By: "./doctor.sh", Cause: "cni-not-initialized", Node: "w1", RightCause: true, RightNode: true}
	report := scenarios.Report{Tool: "./doctor.sh", Results: []scenarios.Result{
		{Fault: "missing-cni", Node: "w1", Class: scenarios.Passed, Detected: right, Repaired: true, ToCause: 1.5, ToRecover: 8.04, Data: intact},
		{Fault: "port-in-use", Node: "w1", Class: scenarios.Passed, Detected: right, Repaired: true, Person: scenarios.ByHint, ToCause: 1.5, ToRecover: 8.04, Data: intact},
		{Fault: "kubelet-stopped", Node: "w1", Class: scenarios.Failed, Reason: "it named nothing; right is kubelet-not-running on w1; it did not repair: exit status 3",
			ToCause: 2, Restored: true, Data: scenarios.Data{}},
		{Fault: "wiped-voter", Node: "cp3", Class: scenarios.Failed, Reason: "etcd lost 2 of 20 writes that it had acknowledged", Detected: scenarios.Detection{RightCause: true},
			Restored: true, Data: scenarios.Data{Lost: []string{"w1's file"}, LostWrites: &two, Writes: 20, WriteGap: 4}},
		{Fault: "lossy-link", Class: scenarios.NotApplicable, Reason: "not applicable: it is for a control-plane, and the lab has none"},
	}}
	var out bytes.Buffer
	printBench(&out, report)
	golden.Check(t, "bench.txt", out.String())
}
