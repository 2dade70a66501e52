package join

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8slab/lab/symptom"
)

// Steps that fail end the attempt with their cause, before anything is changed.
func TestPreflightEndsTheAttempt(t *testing.T) {
	dead := Check{ID: "cri", Result: Blocked, Symptom: symptom.RuntimeSocketMissing, Evidence: "no socket", Hint: "systemctl start containerd"}
	s := newScenery(t, false, "exit 0")
	released := make(chan struct{})
	s.engine.Preflight = func(ctx context.Context, _ Machine, _ Target, report func(Check)) []Check {
		report(dead)
		<-ctx.Done() // told to end, and slow to do so
		report(Check{ID: "endpoint-connect", Result: Blocked, Symptom: symptom.APIServerUnreachable, Evidence: "context canceled"})
		<-released
		return []Check{dead, {ID: "slow", Result: OK}}
	}
	begin := time.Now()
	o := s.engine.Attempt(t.Context(), s.job)
	close(released)
	if o.Symptom != symptom.RuntimeSocketMissing || o.Phase != PhasePreflight || o.Hint != dead.Hint || o.ExitCode != -1 || time.Since(begin) > time.Second {
		t.Errorf("after %s: %+v", time.Since(begin), o)
	}
	if strings.Contains(s.events.details(), string(symptom.APIServerUnreachable)) {
		t.Errorf("a check that was told to end named a cause:\n%s", s.events.details())
	}
	if ran := s.changed(); len(ran) > 0 || !s.missing("args") {
		t.Errorf("something was done all the same: %q", ran)
	}
}

func TestPreflightRepairs(t *testing.T) {
	swap := Check{ID: "swap", Result: Fixable, Symptom: symptom.SwapEnabled, Evidence: "swap is on"}
	tests := []struct {
		name  string
		fixed Check
		want  symptom.ID
	}{
		{"and goes on", Check{ID: "swap", Result: OK, Fixed: "swapoff"}, ""},
		{"and stops where that did not help", Check{ID: "swap", Result: Blocked, Symptom: symptom.SwapEnabled}, symptom.SwapEnabled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScenery(t, false, "exit 3")
			s.engine.Preflight = func(context.Context, Machine, Target, func(Check)) []Check { return []Check{swap} }
			s.engine.Repair = func(_ context.Context, _ Machine, _ Target, checks []Check, report func(Check)) []Check {
				if len(checks) != 1 {
					t.Errorf("RepairPreflight got %v", checks)
				}
				report(tt.fixed)
				return []Check{tt.fixed}
			}
			o := s.engine.Attempt(t.Context(), s.job)
			if o.Symptom != tt.want || s.missing("args") == (tt.want == "") {
				t.Errorf("%+v, kubeadm ran: %t", o, !s.missing("args"))
			}
		})
	}
}

// kubelet is stopped before kubeadm starts, not masked.
func TestPrepareStopsKubelet(t *testing.T) {
	s := newScenery(t, false, "exit 1")
	s.write(kubeletConfig, bridgeConfig)
	s.write(kubeadmConfig, "left with a secret")
	s.engine.Attempt(t.Context(), s.job)
	if got := s.changed(); len(got) != 1 || got[0] != "systemctl stop kubelet.service" {
		t.Errorf("%q", got)
	}
	s.kubeadmEnds(t)
}
