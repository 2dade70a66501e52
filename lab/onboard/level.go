package onboard

import (
	"strings"

	"k8slab/lab/event"
)

// Marks in the progress events of an onboarding.
const (
	warnMark  = "warning: "
	debugMark = "debug: "
	beatMark  = "still running" // the stream's own words while a step is silent
)

// Level is an event of an onboarding as a level of a log: INFO, WARN, ERROR, SUCCESS, DEBUG, or PROGRESS, which is the start of a step and
// the passing of time. DEBUG is for those who ask for it.
func Level(e event.Event) string {
	is := func(mark string) bool { return e.State == event.Progress && strings.HasPrefix(e.Detail, mark) }
	switch {
	case e.State == event.Failed:
		return "ERROR"
	case e.State == event.Done:
		return "SUCCESS"
	case e.State == event.Started || is(beatMark):
		return "PROGRESS"
	case is(warnMark):
		return "WARN"
	case is(debugMark):
		return "DEBUG"
	}
	return "INFO"
}
