package main

import (
	"fmt"
	"strings"

	"k8slab/scenarios"
)

// classes in the order in which they are counted.
var classes = []scenarios.Class{scenarios.Passed, scenarios.Failed, scenarios.SetupFailed, scenarios.NotApplicable}

// text is the report for a terminal: the counts, and what is not as before.
func (r Report) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "nightly %s: %s in %s\n", r.Run.Part, r.summary(), minutes(r.Run.Seconds))
	for _, t := range r.Run.Trouble {
		fmt.Fprintf(&b, "  the suite: %s\n", t)
	}
	if r.Pace.Slow {
		fmt.Fprintf(&b, "  everything takes %.2f times as long as usual (limit %.2f)\n", r.Pace.Factor, r.Pace.Limit)
	}
	for _, v := range r.Verdicts {
		switch {
		case v.State != AsBefore:
			fmt.Fprintf(&b, "  %s: %s\n", v.State, strings.TrimSuffix(v.Name+": "+v.why(), ": "))
		case v.Flaky:
			fmt.Fprintf(&b, "  flaky: %s\n", v.Name)
		}
	}
	if r.Streak.Runs > 0 {
		fmt.Fprintf(&b, "%s\n", r.Streak)
	}
	fmt.Fprintf(&b, "report: %s\n", r.Page)
	return b.String()
}

// summary counts the faults, and the other specs.
func (r Report) summary() string {
	var parts []string
	faults, others, passed, skipped := 0, 0, 0, 0
	for _, s := range r.Run.Specs {
		switch {
		case s.Scenario:
			faults++
		case s.failing():
			others++
		case s.Class == scenarios.NotApplicable:
			skipped++
		default:
			others, passed = others+1, passed+1
		}
	}
	if faults > 0 || others == 0 {
		parts = append(parts, "faults: "+r.counts())
	}
	if others > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d other specs passed", passed, others))
	}
	if skipped > 0 {
		parts = append(parts, fmt.Sprintf("%d not applicable", skipped))
	}
	return strings.Join(parts, "; ")
}

func (r Report) counts() string {
	var parts []string
	for _, c := range classes {
		if n := r.Counts[c]; n > 0 || c == scenarios.Passed || c == scenarios.Failed {
			parts = append(parts, fmt.Sprintf("%d %s", n, c))
		}
	}
	return strings.Join(parts, ", ")
}

// why is what there is to say of the state.
func (v Verdict) why() string {
	var parts []string
	if v.Since != "" {
		parts = append(parts, "since "+v.Since)
	}
	for _, s := range v.Slow {
		parts = append(parts, s.String())
	}
	if v.Reason != "" {
		parts = append(parts, v.Reason)
	}
	return strings.Join(parts, "; ")
}

func (s Slow) String() string {
	return fmt.Sprintf("%s took %.1f s, usually %.1f s, limit %.1f s", s.What, s.Seconds, s.Usual, s.Limit)
}

func (s Streak) String() string {
	return fmt.Sprintf("%d runs in a row without a failure: %d of %d experiments passed, at least %.1f %% do with 95 %% confidence", s.Runs, s.Experiments, s.Experiments, 100*s.AtLeast)
}

func minutes(seconds float64) string {
	return fmt.Sprintf("%d min %02d s", int(seconds)/60, int(seconds)%60)
}
