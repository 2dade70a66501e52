package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"slices"

	"k8slab/scenarios"
)

var (
	//go:embed page.html
	pageText string
	//go:embed page.css
	pageStyle string
)

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page is what the template shows.
type page struct {
	Style   template.CSS
	Title   string
	Tone    string
	Sign    string
	Verdict string
	Report  Report
	Tiles   []tile
	News    []row
	Faults  []row
	Others  []row
	Runs    []runRow // newest first
}

// tile is the count of a class.
type tile struct {
	Class scenarios.Class
	Count int
	Tone  string
}

// row is a spec's.
type row struct {
	Verdict
	Story  string
	Tone   string
	Sign   string
	Cause  cell
	Mend   cell
	All    cell
	Bars   []bar
	Repeat string // the command that repeats it, "" where labctl has none
	Why    string
}

// cell is a time beside the usual one.
type cell struct {
	Text, Usual string
	Slow        bool
}

// bar is an earlier run in a row's history.
type bar struct {
	Height int // of 100
	Tone   string
	Title  string
}

// runRow is a line of the table of runs.
type runRow struct {
	Date, Commit, Counts, Took, Tone, Sign string
	Trouble                                int
}

var tones = map[scenarios.Class]string{scenarios.Passed: "good", scenarios.Failed: "bad", scenarios.SetupFailed: "warn", scenarios.NotApplicable: "none"}

var signs = map[string]string{"good": "✓", "bad": "✗", "warn": "!", "none": "–"}

// html is the report as one page that needs nothing besides itself: no script, no style sheet, no picture.
// story tells whom a scenario happens to.
func (r Report) html(story func(scenario string) string) ([]byte, error) {
	p := page{Style: template.CSS(pageStyle), Report: r}
	p.Verdict, p.Tone = r.verdict()
	p.Sign = signs[p.Tone]
	p.Title = fmt.Sprintf("Nightly %s, %s: %s", r.Run.Part, r.Run.Time.Format("2006-01-02"), p.Verdict)
	for _, c := range classes {
		p.Tiles = append(p.Tiles, tile{c, r.Counts[c], tones[c]})
	}
	clock := newClock(r.Run, r.earlier)
	for _, v := range r.Verdicts {
		row := rowOf(v, clock)
		if v.Scenario {
			row.Story, row.Repeat = story(v.Name), "bin/labctl fault run "+v.Name
		}
		if v.Scenario {
			p.Faults = append(p.Faults, row)
		} else {
			p.Others = append(p.Others, row)
		}
		if v.State != AsBefore {
			p.News = append(p.News, row)
		}
	}
	slices.SortStableFunc(p.News, func(a, b row) int { return order(a.State) - order(b.State) })
	for _, run := range slices.Backward(append(slices.Clone(r.earlier[max(0, len(r.earlier)-window):]), r.Run)) {
		p.Runs = append(p.Runs, rowOfRun(run))
	}
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, p)
	return b.Bytes(), err
}

// verdict is the report in a sentence.
func (r Report) verdict() (text, tone string) {
	failing, other := 0, 0
	for _, v := range r.Verdicts {
		switch {
		case v.failing():
			failing++
		case v.State.regression():
			other++
		}
	}
	switch {
	case failing > 0:
		return fmt.Sprintf("%d of %d failed.", failing, len(r.Verdicts)), "bad"
	case len(r.Run.Trouble) > 0:
		return "The suite failed around its specs.", "bad"
	case r.Regression && other == 0:
		return fmt.Sprintf("Everything takes %.1f times as long as usual.", r.Pace.Factor), "bad"
	case r.Regression:
		return fmt.Sprintf("All passed; %d got worse.", other), "bad"
	}
	return fmt.Sprintf("No regression in %d specs.", len(r.Verdicts)), "good"
}

var states = []State{NewlyFailing, StillFailing, DoesNotApply, NewlySlow, StillSlow, SlowOnce, Flaky, Mended}

func order(s State) int { return slices.Index(states, s) }

func rowOf(v Verdict, c clock) row {
	r := row{Verdict: v, Tone: tones[v.Class], Sign: signs[tones[v.Class]], Why: v.why()}
	cells := []*cell{&r.Cause, &r.Mend, &r.All}
	for i, m := range measures {
		*cells[i] = cellOf(m.of(v.Spec), c.usual(v.Name, m.of))
		cells[i].Slow = slices.ContainsFunc(v.Slow, func(s Slow) bool { return s.What == m.what })
	}
	r.Bars = barsOf(v)
	return r
}

func cellOf(seconds, usual float64) (c cell) {
	if seconds > 0 {
		c.Text = fmt.Sprintf("%.1f s", seconds)
	}
	if usual > 0 {
		c.Usual = fmt.Sprintf("%.1f", usual)
	}
	return c
}

// barsOf are the earlier runs and this one, as high as they took long.
func barsOf(v Verdict) (bars []bar) {
	all := append(slices.Clone(v.Past), Past{Date: "now", Class: v.Class, Seconds: v.Seconds})
	longest := 0.0
	for _, p := range all {
		longest = max(longest, p.Seconds)
	}
	for _, p := range all {
		b := bar{Height: 12, Tone: tones[p.Class], Title: fmt.Sprintf("%s %s %.1f s", p.Date, p.Class, p.Seconds)}
		if longest > 0 {
			b.Height = max(b.Height, int(math.Round(100*p.Seconds/longest)))
		}
		bars = append(bars, b)
	}
	return bars
}

func rowOfRun(run Run) runRow {
	counts := map[scenarios.Class]int{}
	failing := len(run.Trouble) > 0
	for _, s := range run.Specs {
		if s.Scenario {
			counts[s.Class]++
		}
		failing = failing || s.failing()
	}
	r := runRow{Date: run.Time.Format("2006-01-02 15:04"), Commit: run.Commit, Counts: Report{Counts: counts}.counts(), Took: minutes(run.Seconds), Tone: "good", Trouble: len(run.Trouble)}
	if failing {
		r.Tone = "bad"
	}
	r.Sign = signs[r.Tone]
	return r
}
