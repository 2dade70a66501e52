package session

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8slab/lab/event"
)

// seen keeps the states of events.
type seen []event.State

func (s *seen) Emit(e event.Event) { *s = append(*s, e.State) }

// Who waits for a node's labnode sees for whom, unless it is soon over.
func TestSlow(t *testing.T) {
	for took, want := range map[time.Duration]int{slowAfter / 2: 0, 2 * slowAfter: 2} {
		synctest.Test(t, func(t *testing.T) {
			var events seen
			s := &Session{Events: event.NewStream(&events)}
			end := s.ShowIfSlow("w1", "facts")
			time.Sleep(took)
			synctest.Wait()
			why := errors.New("no answer within 1m")
			if err := end(why); !errors.Is(err, why) {
				t.Errorf("after %s: %v", took, err)
			}
			time.Sleep(2 * slowAfter)
			if synctest.Wait(); len(events) != want || want > 0 && events[0] != event.Started {
				t.Errorf("after %s: %v", took, events)
			}
		})
	}
}

// mute is a node whose labnode never ends.
type mute struct{}

func (mute) Name() string { return "w1" }

func (mute) Read(ctx context.Context, _ ...string) (string, error) {
	<-ctx.Done()
	return "", context.Cause(ctx)
}

// Nobody waits for ever for a node whose disk does not answer.
func TestFactsThatDoNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events seen
		s := &Session{Events: event.NewStream(&events)}
		budget := askBudget * time.Duration(s.TimeScale())
		begin := time.Now()
		_, err := s.ReadFacts(t.Context(), mute{})
		if took := time.Since(begin); took != budget || err == nil || !strings.Contains(err.Error(), "no answer within") {
			t.Errorf("after %s, want %s: %v", took, budget, err)
		}
		if synctest.Wait(); len(events) < 2 {
			t.Errorf("it waited without a word: %v", events)
		}
	})
}
