package repair

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"k8slab/lab/cluster"
	"k8slab/lab/labtest"
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

// A confirmed repair does what the dry run told of, what the dry run could not look at, and what others build on.
func TestConfirmedRepairDoesItsPlan(t *testing.T) {
	s := labtest.Session(t, labtest.Small)
	r := &repairRun{Run: cluster.New(s, nil, nil), step: s.Events.Start("", "repair", 0)}
	var ran []string
	of := func(name string, err error, finds bool) stage {
		return stage{name: name, do: func(context.Context) error {
			ran = append(ran, name)
			if finds {
				r.add(Repaired{Symptom: name})
			}
			return err
		}}
	}
	stages := []stage{of(documentsStage, nil, false), of("nothing", nil, false), of("something", nil, true), of("unknown", errors.New("no answer"), false)}
	r.DryRun = true
	_ = r.each(t.Context(), stages)
	r.DryRun, ran = false, nil
	_ = r.each(t.Context(), stages)
	if want := []string{documentsStage, "something", "unknown"}; !slices.Equal(ran, want) {
		t.Errorf("ran %q, want %q", ran, want)
	}
}
