package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Before anything is made, a labctl without labnode says how to get it, without make.
func TestWithoutLabnode(t *testing.T) {
	if len(packedLabnode) > 0 {
		t.Skip("built with labnode in it")
	}
	for _, args := range [][]string{{"up"}, {"up", "--until", "image"}, {"image", "build"}} {
		alone(t)
		status, _, stderr := labctl(t, append([]string{"-c", small}, args...)...)
		if status != exitFailed || !strings.Contains(stderr, "go build -o "+filepath.Dir(os.Args[0])) || strings.Contains(stderr, "make ") {
			t.Errorf("%q: status %d, stderr %q", args, status, stderr)
		}
		if made, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_STATE_HOME"), "k8slab", "small", "id")); len(made) > 0 {
			t.Errorf("%q: made %q", args, made)
		}
	}
}
