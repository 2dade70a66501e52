package main

import (
	"strings"
	"testing"
)

const existing = "../../config/testdata/existing.yaml"

// Commands about what labctl makes refuse a cluster that it did not make, those below them too. The others look for it.
func TestCommandsForLabs(t *testing.T) {
	alone(t)
	for _, args := range [][]string{
		{"plan"}, {"autostart"}, {"addons"}, {"addons", "install", "flux"}, {"snapshot", "list"}, {"power", "off", "w1"}, {"image", "build"},
		{"vagrant", "box"},
	} {
		status, stdout, stderr := labctl(t, append([]string{"-c", existing}, args...)...)
		if status != exitUsage || stdout != "" || !strings.Contains(stderr, "exist without it (machines: ssh)") {
			t.Errorf("%v: status %d, stdout %q, stderr %q", args, status, stdout, stderr)
		}
	}
	if status, _, stderr := labctl(t, "-c", existing, "undo"); status != 0 || strings.Contains(stderr, "machines: ssh") {
		t.Errorf("undo: status %d, stderr %q", status, stderr)
	}
	if status, _, stderr := labctl(t, "-c", existing, "fault", "restore"); status != 0 || stderr != "no fault was injected\n" { // nobody is asked
		t.Errorf("fault restore: status %d, stderr %q", status, stderr)
	}
	if status, _, stderr := labctl(t, "-c", small, "plan"); strings.Contains(stderr, "machines: ssh") {
		t.Errorf("of a lab: status %d, stderr %q", status, stderr)
	}
}
