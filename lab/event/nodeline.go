package event

import (
	"slices"
	"time"
)

// nodeLine is what a node's line has to know: the steps it runs and, once it
// runs none, how it ended.
type nodeLine struct {
	name  string
	steps []liveStep
	last  liveStep
}

type liveStep struct {
	phase   string
	detail  string
	state   State
	start   time.Time
	elapsed time.Duration
	limit   time.Duration
}

func (n *nodeLine) update(e Event) {
	at := n.find(e.Phase)
	if e.State == Started || at < 0 {
		at = len(n.steps)
		n.steps = append(n.steps, liveStep{phase: e.Phase, start: e.Time.Add(-e.Elapsed), limit: e.Limit})
	}
	st := &n.steps[at]
	st.state, st.elapsed = e.State, e.Elapsed
	if !e.heartbeat {
		st.detail = e.Detail
	}
	if e.State != Done && e.State != Failed {
		return
	}
	// A failure stays in sight while other steps end well, until it is mended.
	if n.last.state != Failed || st.state == Failed || st.phase == n.last.phase {
		n.last = *st
	}
	n.steps = slices.Delete(n.steps, at, at+1)
}

// find returns the latest running step of a phase, or -1.
func (n *nodeLine) find(phase string) int {
	for i, st := range slices.Backward(n.steps) {
		if st.phase == phase {
			return i
		}
	}
	return -1
}

// current is the step that started last, of those that run.
func (n *nodeLine) current() *liveStep {
	if len(n.steps) > 0 {
		return &n.steps[len(n.steps)-1]
	}
	return &n.last
}

func (st *liveStep) time(now time.Time) string {
	switch st.state {
	case Done:
		return "done " + took(st.elapsed)
	case Failed:
		return "failed " + took(st.elapsed)
	}
	return running(now.Sub(st.start), st.limit)
}

func (st *liveStep) text() string {
	phase, detail := OneLine(st.phase), OneLine(firstLine(st.detail))
	if detail == "" {
		return phase
	}
	return phase + ": " + detail
}
