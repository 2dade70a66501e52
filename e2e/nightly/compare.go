package main

import (
	"slices"

	"k8slab/scenarios"
)

// Report is a run beside the earlier ones of its part.
type Report struct {
	Run        Run                     `json:"run"`
	Counts     map[scenarios.Class]int `json:"counts"`
	Regression bool                    `json:"regression"`
	Verdicts   []Verdict               `json:"verdicts"`
	Pace       Pace                    `json:"pace"`
	Streak     Streak                  `json:"streak"`
	Page       string                  `json:"-"`

	earlier []Run // of the part, oldest first
}

// State is what is new about a spec.
type State string

// The states. Those of a regression come first.
const (
	NewlyFailing State = "newly failing"
	StillFailing State = "still failing"
	DoesNotApply State = "does not apply" // it did in an earlier run, or must
	NewlySlow    State = "newly slow"
	StillSlow    State = "still slow"
	SlowOnce     State = "slow this once"
	Flaky        State = "flaky"
	Mended       State = "mended" // it failed last time
	AsBefore     State = ""
)

func (s State) regression() bool {
	return s == NewlyFailing || s == StillFailing || s == DoesNotApply || s == NewlySlow
}

// Verdict is a spec beside its earlier runs.
type Verdict struct {
	Spec
	State State  `json:"state,omitempty"`
	Since string `json:"since,omitempty"` // date of the first failure of those without a success between
	Slow  []Slow `json:"slow,omitempty"`
	Flaky bool   `json:"flaky,omitempty"` // it fails and passes again, whatever it does now
	Past  []Past `json:"past,omitempty"`  // oldest first, this run not among them
}

// Past is how a spec did in an earlier run.
type Past struct {
	Date    string          `json:"date"`
	Commit  string          `json:"commit,omitempty"`
	Class   scenarios.Class `json:"class"`
	Seconds float64         `json:"seconds"`
}

// Streak are the runs in a row, up to this one, in which no experiment failed.
type Streak struct {
	Runs        int     `json:"runs"`
	Experiments int     `json:"circles"`
	AtLeast     float64 `json:"at_least"` // share of experiments that pass, with 95 % confidence
}

// allApply is the part in which every scenario applies.
const allApply = "containers"

// window is how many earlier runs a comparison looks at.
const window = 20

// compare judges a run by the earlier ones of its part.
func compare(night Run, history []Run) Report {
	r := Report{Run: night, Counts: map[scenarios.Class]int{}}
	for _, h := range history {
		if h.Part == night.Part && h.Time.Before(night.Time) {
			r.earlier = append(r.earlier, h)
		}
	}
	clock := newClock(night, r.earlier)
	r.Pace = clock.pace()
	r.Regression = len(night.Trouble) > 0 || r.Pace.Newly
	for _, s := range night.Specs {
		if s.Scenario {
			r.Counts[s.Class]++
		}
		v := verdict(s, night, r.earlier)
		if v.Slow = clock.slow(s); len(v.Slow) > 0 && !v.State.regression() {
			v.State = slices.MinFunc(v.Slow, func(a, b Slow) int { return order(a.State) - order(b.State) }).State
		}
		r.Regression = r.Regression || v.State.regression()
		r.Verdicts = append(r.Verdicts, v)
	}
	r.Streak = streak(night, r.earlier)
	return r
}

// verdict compares how a spec of the night ended.
func verdict(s Spec, night Run, earlier []Run) Verdict {
	v := Verdict{Spec: s}
	for _, h := range earlier[max(0, len(earlier)-window):] {
		if was, ran := h.spec(s.Name); ran {
			v.Past = append(v.Past, Past{Date: h.Time.Format("2006-01-02"), Commit: h.Commit, Class: was.Class, Seconds: was.Seconds})
		}
	}
	v.Flaky = flaky(append(slices.Clone(v.Past), Past{Commit: night.Commit, Class: s.Class}))
	var last Past
	if len(v.Past) > 0 {
		last = v.Past[len(v.Past)-1]
	}
	switch {
	case s.failing() && last.failing():
		v.State = StillFailing
		for _, p := range slices.Backward(v.Past) {
			if !p.failing() {
				break
			}
			v.Since = p.Date
		}
	case s.failing():
		v.State = NewlyFailing
	case s.Class == scenarios.NotApplicable && (s.Scenario && night.Part == allApply || slices.ContainsFunc(v.Past, Past.passed)):
		v.State = DoesNotApply
	case v.Flaky:
		v.State = Flaky
	case s.Class == scenarios.Passed && last.failing():
		v.State = Mended
	}
	return v
}

func (p Past) failing() bool { return p.Class == scenarios.Failed || p.Class == scenarios.SetupFailed }

func (p Past) passed() bool { return p.Class == scenarios.Passed }

// flaky tells whether a spec failed and passed with the same commit, or failed, passed and failed again. One failure that a change mended is
// not flaky.
func flaky(past []Past) bool {
	type outcomes struct{ failed, passed bool }
	of := map[string]outcomes{}
	spells := 0
	failing := false
	for _, p := range past {
		if p.failing() && !failing {
			spells++
		}
		if p.Class != scenarios.NotApplicable {
			failing = p.failing()
		}
		o := of[p.Commit]
		of[p.Commit] = outcomes{o.failed || p.failing(), o.passed || p.passed()}
	}
	for commit, o := range of {
		if commit != "" && o.failed && o.passed {
			return true
		}
	}
	return spells > 1
}

// streak adds up the experiments of the runs since the last one in which anything failed. A run without any adds nothing.
func streak(night Run, earlier []Run) (s Streak) {
	for _, run := range slices.Backward(append(slices.Clone(earlier), night)) {
		if len(run.Trouble) > 0 || slices.ContainsFunc(run.Specs, Spec.failing) {
			break
		}
		count := 0
		for _, spec := range run.Specs {
			if spec.Scenario && spec.Class == scenarios.Passed {
				count++
			}
		}
		if count > 0 {
			s.Runs, s.Experiments = s.Runs+1, s.Experiments+count
		}
	}
	s.AtLeast = scenarios.AtLeast(s.Experiments, s.Experiments)
	return s
}
