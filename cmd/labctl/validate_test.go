package main

import (
	"bytes"
	"strings"
	"testing"

	"k8slab/lab/event"
	"k8slab/lab/validate"
)

func TestPrintFindings(t *testing.T) {
	var out bytes.Buffer
	printFindings(&out, []validate.Finding{
		{Area: validate.AreaCluster, Check: "every Node is Ready", Status: validate.Passed, Detail: "cp1; w1"},
		{Area: validate.AreaMonitoring, Check: "a check about node-with-a-long-name.rack-7.example that takes two lines", Status: validate.NotApplicable, Detail: "nothing there"},
		{Area: validate.AreaNetwork, Check: "pods reach pods of other Nodes", Status: validate.Failed,
			Detail: strings.Repeat("from w1 to w2 (10.244.2.7:8080): i/o timeout; ", 3), Next: "see that the pod network's own traffic passes between the Nodes (VXLAN is UDP 8472 or 4789)"},
	})
	want := `STATUS          AREA        CHECK
passed          cluster     every Node is Ready
not-applicable  monitoring  a check about node-with-a-long-name.rack-7.example
                            that takes two lines
failed          network     pods reach pods of other Nodes

not-applicable: monitoring: a check about node-with-a-long-name.rack-7.example
that takes two lines
  nothing there

failed: network: pods reach pods of other Nodes
  from w1 to w2 (10.244.2.7:8080): i/o timeout; from w1 to w2 (10.244.2.7:8080):
  i/o timeout; from w1 to w2 (10.244.2.7:8080): i/o timeout;
  next: see that the pod network's own traffic passes between the Nodes (VXLAN
        is UDP 8472 or 4789)
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s", got)
	}
	for line := range strings.Lines(out.String()) {
		if event.Columns(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("too wide: %q", line)
		}
	}
}

func TestValidateUsage(t *testing.T) {
	for _, args := range [][]string{{"validate", "weather"}, {"validate", "network", "storage"}, {"validate", "--output", "html"}} {
		var stdout, stderr bytes.Buffer
		if status := run(args, nil, &stdout, &stderr); status != exitUsage {
			t.Errorf("%q: status %d: %s", args, status, stderr.String())
		}
	}
	var stdout, stderr bytes.Buffer
	if status := run([]string{"validate", "cluster", "--kubeconfig", "testdata/no-such-file"}, nil, &stdout, &stderr); status != exitFailed ||
		!strings.Contains(stderr.String(), "no-such-file") {
		t.Errorf("status %d: %s", status, stderr.String())
	}
}
