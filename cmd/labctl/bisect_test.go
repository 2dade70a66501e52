package main

import (
	"strings"
	"testing"

	"k8slab/lab/bisect"
)

func TestCommandVerdict(t *testing.T) {
	for status, want := range map[int]bisect.Verdict{0: bisect.Good, 1: bisect.Bad, 3: bisect.Bad, 124: bisect.Bad, 125: bisect.Skip, 127: bisect.Bad, 2: "", 128: "", 130: ""} {
		if got, decided := commandVerdict(status); got != want || decided != (want != "") {
			t.Errorf("%d: got %q, %v", status, got, decided)
		}
	}
}

func TestBisectUsage(t *testing.T) {
	alone(t)
	for args, want := range map[string]string{
		"bisect --good a -- status":          "needs --good COMMIT, --bad COMMIT and a command",
		"bisect --good a --bad b":            "needs a command after --",
		"bisect --good a --bad b -- frobnic": `"frobnic" is no command of labctl`,
		"bisect --good a --bad b -- -o json": "is no command of labctl",
		"bisect --good a --bad b -- status":  "cluster.yaml names no checkout that is a git repository",
	} {
		status, _, stderr := labctl(t, append([]string{"-c", small}, strings.Fields(args)...)...)
		if status != exitUsage && status != exitFailed || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, %s", args, status, stderr)
		}
	}
	if status, _, stderr := labctl(t, "-c", small, "bisect", "--abort"); status != 0 || !strings.Contains(stderr, "there is no bisection of small") {
		t.Errorf("nothing to abort: status %d, %s", status, stderr)
	}
}
