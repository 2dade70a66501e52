package session_test

import (
	"testing"

	"k8slab/lab/host"
	"k8slab/lab/session"
)

// A slow computer has slow containers. Machines that it reaches over SSH are others.
func TestEmulated(t *testing.T) {
	was := host.Emulated
	t.Cleanup(func() { host.Emulated = was })
	host.Emulated = func() bool { return true }
	for uri, want := range map[string]int{host.Containers: 5, "ssh": 1} {
		if got := session.TimeScale(uri); got != want {
			t.Errorf("%s: got %d, want %d", uri, got, want)
		}
	}
}
