package repair

import (
	"testing"
	"time"

	"k8slab/lab/symptom"
)

// A dry run's diagnosis is used only by a run that follows at once.
func TestSeenIsUsedWhileFresh(t *testing.T) {
	found := []symptom.Finding{{Symptom: symptom.KubeletNotRunning}}
	for age, want := range map[time.Duration]int{0: 1, time.Minute: 0} {
		if got := (&Seen{found, time.Now().Add(-age)}).fresh(); len(got) != want {
			t.Errorf("%s old: %v", age, got)
		}
	}
	if got := (*Seen)(nil).fresh(); got != nil {
		t.Errorf("none: %v", got)
	}
}
