package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8slab/lab/onboard"
	"k8slab/lab/validate"
)

// page is what both forms of the report show. Its texts are clean.
type page struct {
	Title, Outcome, Tone, Sign string

	Summary  []fact
	Phases   []phaseRow
	Took     string // of all phases
	Cluster  comparison
	Counts   string // of the findings
	Findings []finding
	Errors   []failure
	Changes  []change
	Advice   []string
}

// fact is a line of the summary.
type fact struct{ Name, Value string }

type phaseRow struct {
	ID, Title, Status, Tone, Sign, Began, Ended, Took, Attempts, Error string
}

// finding is a validate.Finding of a phase.
type finding struct {
	Phase, Area, Check, Status, Tone, Sign, Detail, Next string
}

// open tells whether somebody has to act.
func (f finding) open() bool { return f.Tone == "bad" || f.Tone == "warn" }

type failure struct{ Time, Phase, Error string }

type change struct{ Time, Phase, What, Undo, Status, Tone string }

var signs = map[string]string{"good": "✓", "bad": "✗", "warn": "!", "none": "–"}

func newPage(in Input) (page, error) {
	st := in.State
	if st == nil {
		return page{}, errNoState
	}
	p := page{Title: clean("Onboarding of " + st.Node), Cluster: compare(in.Before, in.After)}
	p.Outcome, p.Tone = outcome(st)
	p.Sign = signs[p.Tone]
	p.Phases, p.Took = phaseRows(st)
	p.Findings, p.Counts = findings(in.Findings)
	for _, e := range st.Errors {
		p.Errors = append(p.Errors, failure{moment(e.Time), string(e.Phase), clean(e.Error)})
	}
	for _, c := range st.Changes {
		p.Changes = append(p.Changes, changeOf(c))
	}
	p.Advice = advice(st, p.Findings)
	p.Summary = summary(in, p.Took, p.Findings)
	return p, nil
}

// outcome is how the onboarding stands, in a sentence.
func outcome(st *onboard.State) (text, tone string) {
	switch st.Condition() {
	case onboard.Onboarded:
		return clean(fmt.Sprintf("%s is a member of %s", st.Node, st.Cluster)), "good"
	case onboard.Broken:
		return fmt.Sprintf("Failed at %s", st.CurrentPhase), "bad"
	case onboard.HalfBack:
		return fmt.Sprintf("Half rolled back: %d of %d changes are left", left(st), len(st.Changes)), "bad"
	case onboard.TakenBack:
		return "Rolled back: every change is undone", "none"
	}
	if st.CurrentPhase == "" {
		return "Not finished", "warn"
	}
	return fmt.Sprintf("Not finished: at %s", st.CurrentPhase), "warn"
}

// left counts the changes that are not undone.
func left(st *onboard.State) int {
	n := 0
	for _, c := range st.Changes {
		if c.Status != onboard.Undone {
			n++
		}
	}
	return n
}

// next says whose turn it is, and to do what.
func next(st *onboard.State, found []finding) string {
	switch condition := st.Condition(); {
	case condition == onboard.Onboarded && slices.ContainsFunc(found, finding.open):
		return "the node is in; fix the findings below"
	case condition == onboard.Onboarded:
		return "nothing to do; the node is schedulable"
	case condition == onboard.TakenBack:
		return "nothing to do; the node is removed"
	default:
		return strings.ReplaceAll(condition.Advice(), "NODE", st.Node)
	}
}

func summary(in Input, took string, found []finding) []fact {
	st := in.State
	facts := []fact{
		{"Node", st.Node + ", " + st.Role},
		{"Cluster", st.Cluster + " (" + st.ClusterID + ")"},
		{"Began", moment(st.Started)},
		{"Last written", moment(st.Timestamp)},
		{"Duration", fmt.Sprintf("%s in all, %s of it in phases", span(st.Timestamp.Sub(st.Started)), took)},
		{"Phases", fmt.Sprintf("%s, %d failed", st.Progress(), st.FailedPhases)},
		{"Next", next(st, found)},
	}
	if in.Log != "" {
		facts = append(facts, fact{"Log", in.Log})
	}
	for i := range facts {
		facts[i].Value = clean(facts[i].Value)
	}
	return facts
}

var phaseTones = map[onboard.Status]string{onboard.Completed: "good", onboard.Failed: "bad", onboard.InProgress: "warn", onboard.Skipped: "warn"}

func phaseRows(st *onboard.State) (rows []phaseRow, took string) {
	total := 0.0
	for _, p := range onboard.Phases() {
		status := st.PhaseStatus[p.ID]
		r := phaseRow{ID: string(p.ID), Title: p.Title, Status: words(status), Tone: cmp.Or(phaseTones[status], "none")}
		r.Sign = signs[r.Tone]
		if text := st.PhaseErrors[p.ID]; text != "" {
			r.Error = clean(text + "\nimpact: " + p.Impact)
		}
		if t, ran := st.PhaseTimes[p.ID]; ran {
			r.Began, r.Took, r.Attempts = clock(t.Started), seconds(t.Seconds), fmt.Sprint(t.Attempts)
			total += t.Seconds
			if !t.Ended.IsZero() {
				r.Ended = clock(t.Ended)
			}
		}
		rows = append(rows, r)
	}
	return rows, seconds(total)
}

// statuses of findings, in the order in which a reader needs them.
var statuses = []validate.Status{validate.Failed, validate.Warned, validate.NotApplicable, validate.Passed}

var findingTones = map[validate.Status]string{validate.Failed: "bad", validate.Warned: "warn", validate.NotApplicable: "none", validate.Passed: "good"}

// findings lists the worst first, and counts them.
func findings(byPhase map[onboard.PhaseID][]validate.Finding) (all []finding, counts string) {
	count := map[validate.Status]int{}
	phases := onboard.Phases()
	at := func(id string) int {
		return slices.IndexFunc(phases, func(p onboard.Phase) bool { return string(p.ID) == id })
	}
	for id, found := range byPhase {
		for _, f := range found {
			count[f.Status]++
			tone := cmp.Or(findingTones[f.Status], "bad") // what is not known to be well is not shown as such
			all = append(all, finding{
				Phase: clean(string(id)), Area: clean(string(f.Area)), Check: clean(f.Check), Status: clean(words(f.Status)),
				Tone: tone, Sign: signs[tone], Detail: clean(f.Detail), Next: clean(f.Next),
			})
		}
	}
	rank := func(f finding) int {
		return slices.IndexFunc(statuses, func(s validate.Status) bool { return words(s) == f.Status })
	}
	slices.SortStableFunc(all, func(a, b finding) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(at(a.Phase), at(b.Phase)))
	})
	var texts []string
	known := 0
	for _, s := range statuses {
		if n := count[s]; n > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", n, words(s)))
			known += n
		}
	}
	if n := len(all) - known; n > 0 {
		texts = append(texts, fmt.Sprintf("%d unknown", n))
	}
	return all, strings.Join(texts, ", ")
}

var changeTones = map[onboard.Status]string{onboard.Made: "good", onboard.Intended: "warn", onboard.Undone: "none"}

func changeOf(c onboard.Change) change {
	status := words(c.Status)
	if c.Status == onboard.Intended {
		status = "may have been made"
	}
	return change{moment(c.Time), string(c.Phase), clean(c.What), clean(c.Undo), status, changeTones[c.Status]}
}

// advice is what to do, from the findings and the state, each once.
func advice(st *onboard.State, found []finding) []string {
	var all []string
	add := func(text string) {
		if text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	for _, f := range found {
		if f.open() {
			add(f.Next)
		}
	}
	switch command := clean("labctl onboard " + st.Node); st.Condition() {
	case onboard.Broken, onboard.Interrupted:
		add("When the cause is fixed, continue: " + command + " --resume")
		if left(st) > 0 {
			add("Or undo what was done: " + command + " --rollback")
		}
	case onboard.HalfBack:
		add("Finish the rollback: " + command + " --rollback")
	case onboard.Onboarded:
		add("Check it again later, and fix what no longer holds: " + command + " --resume")
	}
	if st.PhaseStatus[onboard.PreValidation] == onboard.Skipped {
		add("The pre-validation was skipped; make its checks now: labctl validate")
	}
	return all
}

// words are a status as people write it.
func words[S ~string](s S) string {
	return strings.ReplaceAll(strings.ReplaceAll(string(s), "_", " "), "-", " ")
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func clock(t time.Time) string { return t.UTC().Format("15:04:05") }

func seconds(s float64) string { return span(time.Duration(s * float64(time.Second))) }

// span is a duration with tenths of a second, or of a millisecond when it is shorter than one second.
func span(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond / 10).String()
	}
	return d.Round(time.Second / 10).String()
}
