package event

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestTerminalLosesNoResult ends steps with texts that are wider than the screen, several of the same node and name, and wants to read all.
func TestTerminalLosesNoResult(t *testing.T) {
	const moved = "cni-stale-config: 00-old.conflist comes before the network add-on's and wins; moved it aside"
	const ended = "cni-stale-config: pod k8slab/probe-v9wtj has 10.99.0.2; deleted its sandbox; kubelet recreates it"
	for _, width := range []int{40, 60, 120} {
		synctest.Test(t, func(t *testing.T) {
			scr := newScreen(t, width)
			s := NewStream(Terminal(scr, func() int { return width }))
			for _, text := range []string{moved, ended} {
				s.Start("w1", "repair", 0).EndWith(text)
			}
			s.Start("w2", "collect", 0).EndWith("first line\nsecond line of it")
			_ = s.Start("w3", "join", 0).End(errors.New("the first cause of the failure that is too long for a line\nmore"))
			s.Start("w3", "collect", 0).EndWith("the logs of w3 are in a directory")
			_ = s.Start("w3", "join", 0).End(nil)
			s.Start("w4", "boot", 0).EndWith("it has a new disk")
			s.Start("w4", "join", time.Minute) // is at work to the end
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			read := strings.Join(strings.Fields(scr.text()), " ")
			for _, want := range []string{moved, ended, "second line of it", "the first cause of the failure that is too long for a line more",
				"the logs of w3 are in a directory", "it has a new disk"} {
				if strings.Count(read, want) != 1 {
					t.Errorf("%d columns: %q is not there once:\n%s", width, want, scr.text())
				}
			}
		})
	}
}
