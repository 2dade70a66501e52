package join

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8slab/lab/symptom"
)

func stub(id CheckID, c Check) probe {
	return probe{id: id, run: func(context.Context, *preflight) Check { return c }}
}

func ids(checks []Check) []string {
	var list []string
	for _, c := range checks {
		list = append(list, string(c.ID)+"="+string(c.Result))
	}
	return list
}

func bare(t *testing.T, target Target) *preflight {
	t.Helper()
	return newPreflight(t.Context(), Machine{Root: t.TempDir(), Now: time.Now}, target)
}

func TestChecksAreSortedFromWorstAndFromCause(t *testing.T) {
	got := bare(t, Target{}).all(t.Context(), []probe{
		stub("a", ok("")), stub("b", warn("", "", "")), stub("c", blocked(symptom.DiskFull, "", "")),
		stub("d", fixable(symptom.SwapEnabled, "", "")), stub("e", blocked(symptom.PortInUse, "", "")), stub("f", ok("")),
	}, nil)
	want := []string{"c=blocked", "e=blocked", "d=fixable", "b=warn", "a=ok", "f=ok"}
	if !slices.Equal(ids(got), want) {
		t.Errorf("got %q, want %q", ids(got), want)
	}
	if Verdict(got) != Blocked || Verdict(got[2:]) != Fixable || Verdict(got[3:]) != Warn || Verdict(nil) != OK {
		t.Errorf("verdicts %s %s %s", Verdict(got), Verdict(got[2:]), Verdict(got[3:]))
	}
}

// A check that panics or never ends proves nothing, and takes no other with it.
func TestBrokenChecksDoNotStopOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		defer close(forever)
		begin := time.Now()
		got := bare(t, Target{}).all(t.Context(), []probe{
			{id: "panics", run: func(context.Context, *preflight) Check { panic("oh") }},
			{id: "hangs", limit: time.Second, run: func(context.Context, *preflight) Check { <-forever; return ok("") }},
			stub("well", ok("")),
		}, nil)
		if !slices.Equal(ids(got), []string{"panics=warn", "hangs=warn", "well=ok"}) {
			t.Errorf("got %q", ids(got))
		}
		if took := time.Since(begin); took != time.Second+grace {
			t.Errorf("took %s", took)
		}
		if !strings.Contains(find(got, "panics").Evidence, "oh") || !strings.Contains(find(got, "hangs").Evidence, "did not end within 1s") {
			t.Errorf("evidence %q, %q", find(got, "panics").Evidence, find(got, "hangs").Evidence)
		}
	})
}

// A cause is announced when its check ends, not when all do.
func TestReportIsPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		reported := map[CheckID]time.Duration{}
		slow := probe{id: "slow", run: func(context.Context, *preflight) Check { time.Sleep(2 * time.Second); return ok("") }}
		bare(t, Target{}).all(t.Context(), []probe{slow, stub("cause", blocked(symptom.DiskFull, "", ""))}, func(c Check) {
			reported[c.ID] = time.Since(begin)
		})
		if reported["cause"] != 0 || reported["slow"] != 2*time.Second {
			t.Errorf("reported %v", reported)
		}
	})
}

func TestIgnoredChecksWarn(t *testing.T) {
	swap := stub("swap", fixable(symptom.SwapEnabled, "", "on"))
	swap.ignore = []string{"swap"}
	other := stub("other", blocked(symptom.DiskFull, "", "full"))
	tests := []struct {
		name   string
		ignore []string
		want   []string
	}{
		{"nothing", nil, []string{"other=blocked", "swap=fixable"}},
		{"by name, in any case", []string{"SWAP"}, []string{"other=blocked", "swap=warn"}},
		{"all that kubeadm would", []string{"all"}, []string{"other=blocked", "swap=warn"}},
		{"another", []string{"Mem"}, []string{"other=blocked", "swap=fixable"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := ids(bare(t, Target{Ignore: tt.ignore}).all(t.Context(), []probe{swap, other}, nil)); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestEvidenceIsRedacted(t *testing.T) {
	got := bare(t, Target{}).all(t.Context(), []probe{stub("a", blocked("", "use "+testToken, "token %s, key %s", testToken, testKey))}, nil)[0]
	if strings.Contains(got.Evidence+got.Hint, "0123456789abcdef") || strings.Contains(got.Evidence, testKey) {
		t.Errorf("%q, %q", got.Evidence, got.Hint)
	}
}

func TestLazily(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		find := lazily(t.Context(), 5*time.Second, func(ctx context.Context) (int, error) {
			calls++
			select {
			case <-time.After(3 * time.Second):
				return 7, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		})
		hasty, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("no time"))
		defer cancel()
		if _, err := find(hasty); err == nil || err.Error() != "no time" { // does not spoil it for the others
			t.Errorf("hasty: %v", err)
		}
		for range 2 {
			if got, err := find(t.Context()); got != 7 || err != nil {
				t.Errorf("got %d, %v", got, err)
			}
		}
		if calls != 1 {
			t.Errorf("found %d times", calls)
		}
	})
	broken := lazily(t.Context(), time.Second, func(context.Context) (int, error) { panic("oh") })
	if _, err := broken(t.Context()); err == nil || !strings.Contains(err.Error(), "oh") {
		t.Errorf("a panic became %v", err)
	}
}

func TestContainer(t *testing.T) {
	tests := []struct {
		name, file, text string
		want             bool
	}{
		{"a machine", "/proc/1/environ", "HOME=/\x00TERM=linux\x00", false},
		{"systemd booted in one", "/run/systemd/container", "lxc-libvirt\n", true},
		{"its init was told", "/proc/1/environ", "HOME=/\x00container=lxc-libvirt\x00", true},
		{"told nothing", "/proc/1/environ", "container=\x00", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFakeMachine(t)
			f.write(tt.file, tt.text)
			if got := f.Container(); got != tt.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
