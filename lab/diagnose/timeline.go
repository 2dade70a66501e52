package diagnose

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// session is the attempts to join of one time, such as of one labctl up, on one axis.
type session struct {
	Start    time.Time
	Ticks    []tick
	Attempts []attemptView
}

type tick struct {
	Left float64 // per cent of the axis
	Text string
}

// attemptView is an attempt with the places of its phases.
type attemptView struct {
	AttemptRow
	Left, Width float64 // per cent of the axis
	Phases      []phaseView
}

type phaseView struct {
	PhaseRow
	Left, Width float64 // per cent of the attempt
	Colour      int     // of phaseColours
	Last        bool    // where an attempt that did not join ended
}

const (
	// sessionGap is a pause that begins another session: on one axis with it the attempts would be too short to see.
	sessionGap   = 10 * time.Minute
	phaseColours = 8
)

// Result says how the attempt ended.
func (a attemptView) Result() string {
	switch {
	case a.Joined:
		return "joined in " + seconds(a.Elapsed)
	case a.Symptom != "" || a.Evidence != "":
		return strings.TrimSpace("failed after " + seconds(a.Elapsed) + " " + string(a.Symptom))
	}
	return "not ended after " + seconds(a.Elapsed)
}

// Tone is good, bad or warn, like Result.
func (a attemptView) Tone() string {
	switch {
	case a.Joined:
		return "good"
	case a.Symptom != "" || a.Evidence != "":
		return "bad"
	}
	return "warn"
}

// Mark says it without a colour.
func (a attemptView) Mark() string {
	return map[string]string{"good": "✓", "bad": "✗", "warn": "…"}[a.Tone()]
}

func (a AttemptRow) end() time.Time { return a.Started.Add(span(a.Elapsed)) }

// span is a duration of at most ten years.
func span(s float64) time.Duration { return time.Duration(min(s, 3e8) * float64(time.Second)) }

// sessionsOf lays the attempts out, the newest session first.
func sessionsOf(rows []AttemptRow) []session {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b AttemptRow) int { return a.Started.Compare(b.Started) })
	colours := map[string]int{}
	var groups [][]AttemptRow
	var end time.Time
	for i, a := range rows {
		if i == 0 || a.Started.Sub(end) > sessionGap {
			groups = append(groups, nil)
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], a)
		if a.end().After(end) {
			end = a.end()
		}
	}
	var all []session
	for _, g := range slices.Backward(groups) {
		all = append(all, layOut(g, colours))
	}
	return all
}

func layOut(rows []AttemptRow, colours map[string]int) session {
	s := session{Start: rows[0].Started}
	length := 0.0
	for _, a := range rows {
		length = max(length, a.end().Sub(s.Start).Seconds())
	}
	length = max(length, 1)
	for _, a := range rows {
		s.Attempts = append(s.Attempts, attemptView{
			AttemptRow: a, Left: place100(a.Started.Sub(s.Start).Seconds(), length), Width: place100(a.Elapsed, length),
			Phases: phaseViews(a, colours),
		})
	}
	step := niceStep(length)
	for at := 0.0; at <= 0.93*length; at += step { // further right there is no room for the words
		s.Ticks = append(s.Ticks, tick{place100(at, length), seconds(at)})
	}
	s.Ticks[0].Text = "0"
	return s
}

func phaseViews(a AttemptRow, colours map[string]int) []phaseView {
	var all []phaseView
	for i, p := range a.Phases {
		if _, ok := colours[p.Name]; !ok {
			colours[p.Name] = len(colours) % phaseColours
		}
		last := i == len(a.Phases)-1
		if last && p.Elapsed == 0 && !a.Joined { // it never ended
			p.Elapsed = max(0, a.Elapsed-p.At)
		}
		all = append(all, phaseView{
			PhaseRow: p, Left: place100(p.At, a.Elapsed), Width: place100(p.Elapsed, a.Elapsed), Colour: colours[p.Name], Last: last && !a.Joined,
		})
	}
	return all
}

// place100 is at in per cent of length, rounded to what a page needs.
func place100(at, length float64) float64 {
	if length <= 0 {
		return 0
	}
	return math.Round(min(max(at/length, 0), 1)*1e4) / 100
}

// niceStep divides an axis of so many seconds into three to six parts that people count in.
func niceStep(length float64) float64 {
	for _, step := range []float64{0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600} {
		if length/step <= 6 {
			return step
		}
	}
	return length / 5
}

// Label names the attempt.
func (a attemptView) Label() string {
	if a.Number <= 0 {
		return a.Node
	}
	return fmt.Sprintf("%s, attempt %d", a.Node, a.Number)
}
