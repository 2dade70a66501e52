package join

import (
	"os"
	"strings"
	"testing"
	"time"

	"k8slab/lab/symptom"
)

// What keeps a Node out of the cluster is in kubelet's log alone: it ends the wait, or is the cause when the wait has ended. A line from
// before the Node was missed, or from another program, is none of it.
func TestProveSaysWhatKeepsTheNodeOut(t *testing.T) {
	const denied, silent = `E0301 10:11:12.1 77 kubelet_node_status.go:108] "Unable to register node" err="denied the request"`, "E0301 10:11:12.1 77 x.go:1] failed calling webhook"
	tests := []struct {
		name, unit, line string
		ready            time.Duration
		want             symptom.ID
	}{
		{"denied", "kubelet.service", denied, time.Minute, symptom.AdmissionRejects},
		{"a webhook that does not answer", "kubelet.service", silent, 500 * time.Millisecond, symptom.AdmissionRejects},
		{"another program", "containerd.service", denied, 500 * time.Millisecond, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScenery(t, false, "exit 0")
			newNodeAPI(t, s.fakeMachine).remove()
			s.engine.Certain = func(line string) (symptom.ID, bool) {
				return symptom.AdmissionRejects, strings.Contains(line, "denied the request")
			}
			s.engine.Causes = func(text string) []symptom.ID {
				if strings.Contains(text, "failed calling webhook") {
					return []symptom.ID{symptom.AdmissionRejects}
				}
				return nil
			}
			s.journal("missed", tt.unit, tt.line)
			go func() {
				for !strings.Contains(s.events.details(), "no Node w1") {
					time.Sleep(5 * time.Millisecond)
				}
				_ = os.WriteFile(s.path("missed"), nil, 0o600)
			}()
			var o Outcome
			s.job.Target, s.job.Ready = Target{}, tt.ready
			begin := time.Now()
			if s.engine.prove(t.Context(), s.job, &o) || o.Symptom != tt.want || time.Since(begin) > 10*time.Second {
				t.Errorf("after %s: %+v", time.Since(begin), o)
			}
			if tt.want != "" && !strings.Contains(o.Evidence, "no Node w1") {
				t.Errorf("evidence %q", o.Evidence)
			}
		})
	}
}
