package lab

import (
	"errors"
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
			l := &Lab{events: event.NewStream(&events)}
			end := l.slow("w1", "facts")
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
