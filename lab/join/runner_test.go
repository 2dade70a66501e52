package join

import (
	"errors"
	"slices"
	"testing"

	"k8slab/lab/event"
	"k8slab/lab/symptom"
)

// details keeps what events say.
type details struct{ texts []string }

func (d *details) Emit(e event.Event) {
	if e.Detail != "" {
		d.texts = append(d.texts, e.Phase+": "+e.Detail)
	}
}

// Whoever counts attempts hears of each once, and cannot make one fail.
func TestEndedAttemptsAreTold(t *testing.T) {
	seen := &details{}
	var told []Outcome
	s := &series{engine: &Engine{Events: event.NewStream(seen), Ended: func(o Outcome) error {
		told = append(told, o)
		return errors.New("the disk is full")
	}}}
	s.tell(Outcome{Joined: true, Already: true}) // nothing was attempted
	s.tell(failedWith(symptom.SwapEnabled))
	if len(told) != 1 || told[0].Symptom != symptom.SwapEnabled {
		t.Errorf("told of %+v", told)
	}
	if want := []string{"metrics: warning: the disk is full"}; !slices.Equal(seen.texts, want) {
		t.Errorf("events: %q, want %q", seen.texts, want)
	}
	s.engine.Ended = nil
	s.tell(Outcome{})
}
