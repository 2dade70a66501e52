package join

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestFixContainerd(t *testing.T) {
	s := newScene(t, false)
	deadContainerd(s, "failed")
	s.startsContainerd(1)
	got, checks := s.fixed("cri")
	if got.Result != OK || got.Fixed != "restarted containerd (1)" {
		t.Errorf("%+v", got)
	}
	if c := find(checks, "image-filesystem"); c.Result != OK { // it could not be checked before
		t.Errorf("%+v", c)
	}
	want := []string{"systemctl enable containerd.service", "systemctl reset-failed containerd.service", "systemctl restart containerd.service"}
	if ran := s.changed(); !slices.Equal(ran, want) {
		t.Errorf("ran %q", ran)
	}
}

// startsContainerd makes the n-th restart bring a healthy runtime, and all of them succeed.
func (s *scene) startsContainerd(n int) {
	starts := 0
	s.answer("systemctl enable", "")
	s.answer("systemctl reset-failed", "")
	s.does("systemctl restart containerd.service", func() (string, error) {
		if starts++; starts == n {
			s.cri = serveCRI(s.fakeMachine, "")
		}
		return "", nil
	})
}

func TestFixContainerdUnmasksAndEnablesCRI(t *testing.T) {
	s := newScene(t, false)
	replaceCRI(s, "cri")
	config := "version = 3\ndisabled_plugins = [\"cri\"]\n[plugins]\n"
	s.write(containerdConfig, config)
	s.answer("systemctl show kubelet.service", showUnits(kubeletUnit, with(with(containerdUnit, "LoadState", "masked"), "UnitFileState", "masked-runtime")))
	s.answer("systemctl unmask --runtime containerd.service", "")
	s.answer("systemctl enable", "")
	s.answer("systemctl reset-failed", "")
	s.does("systemctl restart containerd.service", func() (string, error) { replaceCRI(s, ""); return "", nil })
	s.fixes("cri", "unmasked containerd, took cri out of disabled_plugins in /etc/containerd/config.toml, restarted containerd (1)")
	s.has(containerdConfig, "version = 3\n[plugins]\n")
	s.has(containerdConfig+saved, config)
}

func TestFixContainerdRefuses(t *testing.T) {
	s := newScene(t, false)
	s.cri.stop()
	s.answer("systemctl show kubelet.service", showUnits(kubeletUnit, with(containerdUnit, "LoadState", "not-found")))
	s.refused("cri", "not installed")

	s = newScene(t, false)
	s.target.CRISocket = "unix:///run/other/other.sock"
	s.write("/run/other/other.sock", "")
	s.refused("cri", "which unit listens on /run/other/other.sock is not known")
}

// The waits between starts grow from 5 to 30 s, an answer ends them at once, and after the last the person is asked.
func TestRestartWaits(t *testing.T) {
	tests := []struct {
		name string
		good int // the start after which the runtime answers; 0: never
		want time.Duration
	}{
		{"at once", 1, 0}, {"at the third start", 3, 15 * time.Second}, {"never", 0, 105 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				starts := 0
				run := func(_ context.Context, argv ...string) (string, error) {
					if argv[1] == "restart" {
						starts++
					}
					return "", nil
				}
				p := newPreflight(t.Context(), Machine{Run: run, Now: time.Now}, Target{})
				begin := time.Now()
				n, err := p.restarts(t.Context(), func(context.Context) error {
					if tt.good > 0 && starts >= tt.good {
						return nil
					}
					return errors.New("dead")
				})
				if took := time.Since(begin); took != tt.want {
					t.Errorf("took %s, want %s", took, tt.want)
				}
				if tt.good > 0 && (err != nil || n != tt.good) || tt.good == 0 && (err == nil || starts != 6) {
					t.Errorf("%d starts (%d), %v", n, starts, err)
				}
			})
		})
	}
}
