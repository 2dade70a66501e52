package report

import (
	"k8slab/lab/metrics"
	"k8slab/lab/onboard"
)

// phaseStatuses are all that a phase can have.
var phaseStatuses = []onboard.Status{onboard.NotStarted, onboard.InProgress, onboard.Completed, onboard.Failed, onboard.Skipped, onboard.NotApplicable}

// AddMetrics adds an onboarding's phases to a set. labels, names and values in turns, come before the phases' own.
func AddMetrics(s *metrics.Set, st *onboard.State, labels ...string) {
	with := func(more ...string) []string { return append(append([]string{}, labels...), more...) }
	for _, p := range onboard.Phases() {
		for _, status := range phaseStatuses {
			s.Gauge("k8slab_onboarding_phase_status", "Whether a phase of the last onboarding has the status: 1 or 0.",
				metrics.Bool(st.PhaseStatus[p.ID] == status), with("phase", string(p.ID), "status", string(status))...)
		}
	}
	for _, p := range onboard.Phases() {
		if t, ran := st.PhaseTimes[p.ID]; ran {
			s.Gauge("k8slab_onboarding_phase_duration_seconds", "Time of all attempts of a phase of the last onboarding.",
				t.Seconds, with("phase", string(p.ID))...)
		}
	}
	s.Gauge("k8slab_onboarding_last_timestamp_seconds", "Last change of the onboarding's state, as a Unix time.", float64(st.Timestamp.Unix()), labels...)
}
