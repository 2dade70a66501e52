package event

import (
	"slices"
	"strings"
	"time"
)

// nodeLine is what a node's line has to know: the steps it runs and, once it runs none, how it ended.
type nodeLine struct {
	name     string
	steps    []liveStep
	last     liveStep
	replaced []liveStep // ended with a text, for which the line has no place any more
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
	// A failure stays visible while other steps succeed, until its phase is done.
	if n.last.state != Failed || st.state == Failed || st.phase == n.last.phase {
		n.replace(n.last)
		n.last = *st
	} else {
		n.replace(*st)
	}
	n.steps = slices.Delete(n.steps, at, at+1)
}

// replace keeps a step that ended and is no longer shown, if it ended with a text.
func (n *nodeLine) replace(st liveStep) {
	if st.detail != "" {
		n.replaced = append(n.replaced, st)
	}
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

// current is the running step that started last.
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

// whole is a step that has ended, with all of its text, in lines of at most width columns. Those after the first stand below the text.
func (st *liveStep) whole(name string, width int) []string {
	const least = 10
	head := cut(name, max(4, width/3)) + "  " + st.time(time.Time{}) + "  "
	var all []string
	for _, line := range lines(OneLine(st.phase) + ": " + strings.TrimSpace(st.detail)) {
		for _, part := range Fold(line, max(least, width-Columns(head)), false) {
			all = append(all, head+part)
			head = pad("", Columns(head))
		}
	}
	return all
}

func (st *liveStep) text() string {
	phase, detail := OneLine(st.phase), OneLine(firstLine(st.detail))
	if detail == "" {
		return phase
	}
	return phase + ": " + detail
}
