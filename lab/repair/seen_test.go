package repair

import (
	"testing"
	"time"
)

// A dry run's diagnosis is used only by a run that follows at once.
func TestSeenIsUsedWhileFresh(t *testing.T) {
	for age, want := range map[time.Duration]bool{0: true, time.Minute: false} {
		if got := (&Seen{at: time.Now().Add(-age)}).fresh(); got != want {
			t.Errorf("%s old: %v", age, got)
		}
	}
	if (*Seen)(nil).fresh() || (&Seen{}).fresh() {
		t.Error("there was no dry run")
	}
}
