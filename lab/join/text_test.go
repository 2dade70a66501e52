package join

import (
	"strings"
	"testing"
	"time"

	"k8slab/lab/golden"
	"k8slab/lab/symptom"
)

func TestExplain(t *testing.T) {
	target := Target{Endpoint: testEndpoint}
	meaning := func(id symptom.ID) string {
		return map[symptom.ID]string{
			symptom.KubeBinariesMissing: "A program of Kubernetes is not installed.",
			symptom.SwapEnabled:         "Swap is on.",
		}[id]
	}
	tests := []struct {
		golden string
		o      Outcome
	}{
		{"missing.txt", Outcome{
			Symptom: symptom.KubeBinariesMissing, Evidence: "/bin/sh: 1: kubeadm: not found", Hint: "install the package kubeadm", Phase: PhaseKubeadm,
			Finished: true, ExitCode: 127, Output: "/bin/sh: 1: kubeadm: not found", Elapsed: 120 * time.Millisecond,
			Checks: []Check{{ID: "swap", Result: Fixable, Symptom: symptom.SwapEnabled}, {ID: "cpu", Result: Warn, Symptom: symptom.InsufficientResources}},
		}},
		{"timeout.txt", Outcome{
			Evidence: "kubeadm was ended in kubelet-check: its budget ran out", Phase: "kubelet-check", ExitCode: -1,
			Output: "[kubelet-check] Initial timeout of 40s passed.", Elapsed: 15 * time.Minute,
		}},
		{"blocked.txt", Outcome{Symptom: symptom.RuntimeSocketMissing, Evidence: "no socket", Phase: PhasePreflight, ExitCode: -1, Elapsed: 80 * time.Millisecond}},
		{"joined.txt", Outcome{Joined: true, Phase: PhaseValidate, Finished: true, Elapsed: 8432 * time.Millisecond}},
		{"already.txt", Outcome{Joined: true, Already: true, Phase: PhaseValidate, ExitCode: -1}},
	}
	for _, tt := range tests {
		t.Run(tt.golden, func(t *testing.T) {
			var b strings.Builder
			Explain(&b, tt.o, target, meaning)
			golden.Check(t, "explain-"+tt.golden, b.String())
		})
	}
}
