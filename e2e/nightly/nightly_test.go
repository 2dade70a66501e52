package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8slab/lab/golden"
	"k8slab/scenarios"
)

var firstNight = time.Date(2026, 11, 10, 1, 0, 0, 0, time.UTC)

// past is a night with these results of one scenario each, written "name class seconds".
func past(n int, commit string, specs ...string) Run {
	r := Run{Time: firstNight.AddDate(0, 0, n), Part: "containers", Commit: commit, Where: "2 cores", Seconds: 1700}
	for _, text := range specs {
		s := Spec{Scenario: true}
		var class string
		if _, err := fmt.Sscan(text, &s.Name, &class, &s.Seconds); err != nil {
			panic(err)
		}
		s.Class, s.Experiment.ToCause, s.Experiment.ToRecover = scenarios.Class(class), 1, s.Seconds/3
		r.Specs = append(r.Specs, s)
	}
	return r
}

// someNights are eleven nights before that of testdata/e2e.json.
func someNights() (runs []Run) {
	for n := range 11 {
		specs := []string{fmt.Sprintf("dead-containerd passed %d", 28+n%3), "missing-cni passed 22", fmt.Sprintf("stale-cni passed %d", 24+n%2), "wiped-voter passed 40"}
		if n == 4 {
			specs[0] = "dead-containerd failed 61"
		}
		if n == 7 {
			specs[0] = "dead-containerd failed 62"
		}
		if n > 8 {
			specs = append(specs, "stale-learner failed 5")
		}
		runs = append(runs, past(n, fmt.Sprintf("c0ffee%d", n), specs...))
	}
	return runs
}

func TestReport(t *testing.T) {
	night, err := readRun("testdata/e2e.json", []Spec{{Name: "dead-containerd", Scenario: true}, {Name: "missing-cni", Scenario: true}, {Name: "ip-forward-off", Scenario: true}})
	if err != nil {
		t.Fatal(err)
	}
	night.Part, night.Commit, night.Where = "containers", "beef012", "2 cores"
	for name, history := range map[string][]Run{"first": nil, "compared": someNights()} {
		t.Run(name, func(t *testing.T) {
			r := compare(night, history)
			r.Page = "e2e/results/nightly-containers.html"
			golden.Check(t, name+".txt", r.text())
			page, err := r.html(func(name string) string { return "the story of " + name })
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, name+".html", string(page))
			if !r.Regression {
				t.Error("no regression")
			}
			for _, bad := range []string{"<script", "http:", "https:", "src="} {
				if strings.Contains(string(page), bad) {
					t.Errorf("the page needs %q", bad)
				}
			}
		})
	}
}

func TestGoodNight(t *testing.T) {
	history := someNights()[8:]
	night := past(12, "c0ffee12", "dead-containerd passed 29", "missing-cni passed 22", "stale-learner passed 20")
	history = append(history, past(11, "c0ffee11", "dead-containerd passed 29", "missing-cni passed 22", "stale-learner passed 21"))
	r := compare(night, history)
	r.Page = "page.html"
	golden.Check(t, "good.txt", r.text())
	if r.Regression {
		t.Errorf("a regression: %+v", r.Verdicts)
	}
}

// What ran last time and is gone is missed once.
func TestExpected(t *testing.T) {
	first := past(1, "", "a passed 1", "b passed 1")
	o := options{part: "vms"}
	names := func(specs []Spec) (all string) {
		for _, s := range specs {
			all += s.Name
		}
		return all
	}
	other := past(2, "", "c passed 1")
	other.Part = "hosts"
	first.Part = "vms"
	if got := names(o.expected([]Run{first, other})); got != "ab" {
		t.Errorf("expected %q", got)
	}
	none := past(3, "", "a setup-failed 0")
	none.Part, none.Specs[0].Reason = "vms", didNotRun
	if got := names(o.expected([]Run{first, none})); got != "ab" {
		t.Errorf("after a night without a report expected %q", got)
	}
	first.Specs[1].Reason = didNotRun
	if got := names(o.expected([]Run{first})); got != "a" {
		t.Errorf("expected %q", got)
	}
}

func TestStates(t *testing.T) {
	tests := []struct {
		name   string
		past   string // a letter a night: p f s n, - for not run; oldest first
		now    scenarios.Class
		same   bool // all of one commit
		want   State
		flaky  bool
		alarms bool
	}{
		{"first success", "", "passed", false, AsBefore, false, false},
		{"first failure", "", "failed", false, NewlyFailing, false, true},
		{"no set-up", "ppp", "setup-failed", false, NewlyFailing, false, true},
		{"fails again", "pff", "failed", false, StillFailing, false, true},
		{"fails after a gap", "pf-", "failed", false, StillFailing, false, true},
		{"mended", "ppff", "passed", false, Mended, false, false},
		{"long mended", "pfpp", "passed", false, AsBefore, false, false},
		{"once more", "pfpp", "failed", false, NewlyFailing, true, true},
		{"now and then", "fppfp", "passed", false, Flaky, true, false},
		{"of one commit", "ppfp", "passed", true, Flaky, true, false},
		{"of one commit, now", "ppp", "failed", true, NewlyFailing, true, true},
		{"no longer applies", "ppp", "not-applicable", false, DoesNotApply, false, true},
		{"no longer applies for some nights", "ppnn", "not-applicable", false, DoesNotApply, false, true},
		{"no longer applies where it failed", "pf", "not-applicable", false, DoesNotApply, false, true},
		{"never applied, where all do", "nnn", "not-applicable", false, DoesNotApply, false, true},
		{"does not apply on the first night", "", "not-applicable", false, DoesNotApply, false, true},
		{"applies at last", "nnn", "passed", false, AsBefore, false, false},
	}
	classes := map[rune]string{'p': "passed", 'f': "failed", 's': "setup-failed", 'n': "not-applicable"}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var history []Run
			for n, letter := range tt.past {
				var specs []string
				if letter != '-' {
					specs = []string{"a " + classes[letter] + " 10"}
				}
				commit := "c1"
				if !tt.same {
					commit = fmt.Sprintf("c%d", n+2)
				}
				history = append(history, past(n, commit, specs...))
			}
			r := compare(past(50, "c1", "a "+string(tt.now)+" 10"), history)
			if v := r.Verdicts[0]; v.State != tt.want || v.Flaky != tt.flaky || r.Regression != tt.alarms {
				t.Errorf("got %q, flaky %t, regression %t", v.State, v.Flaky, r.Regression)
			}
		})
	}
}

// Elsewhere than where all apply, what never did may go on so.
func TestNeverApplied(t *testing.T) {
	before, night := past(1, "c", "a not-applicable 10"), past(2, "c", "a not-applicable 10")
	before.Part, night.Part = "vms", "vms"
	if r := compare(night, []Run{before}); r.Regression {
		t.Errorf("got %+v", r.Verdicts)
	}
}

func TestOtherPartsAreNotCompared(t *testing.T) {
	other := past(0, "c", "a failed 10")
	other.Part = "vms"
	later := past(60, "c", "a failed 10")
	if r := compare(past(50, "c", "a passed 10"), []Run{other, later}); r.Regression || len(r.Verdicts[0].Past) > 0 {
		t.Errorf("got %+v", r)
	}
}

func TestExit(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir := t.TempDir()
	data, err := os.ReadFile("testdata/e2e.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "e2e.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	call := func(args ...string) (int, string) {
		var out, errs bytes.Buffer
		return run(args, &out, &errs), out.String() + errs.String()
	}
	history := filepath.Join(os.Getenv("XDG_STATE_HOME"), "k8slab", ".nightly", "history.jsonl")
	for range 2 { // a report that is made again is no further run
		if status, out := call("-part", "vms", "-results", dir, "-commit", "c"); status != 1 || !strings.Contains(out, "newly failing: missing-cni") {
			t.Errorf("status %d: %s", status, out)
		}
	}
	if runs, unread, err := readHistory(history); err != nil || len(runs) != 1 || len(unread) != 0 {
		t.Errorf("history: %d runs, %q, %v", len(runs), unread, err)
	}
	for _, f := range []string{"nightly-vms.json", "nightly-vms.html"} {
		if info, err := os.Stat(filepath.Join(dir, f)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", f, err)
		}
	}
	for _, args := range [][]string{{"-part", "onboard"}, {}, {"-no-such-flag"}, {"-readme", "main.go"}} {
		if status, out := call(args...); status != 2 {
			t.Errorf("%q: status %d: %s", args, status, out)
		}
	}
	if status, out := call("-part", "vms", "-results", t.TempDir()); status != 1 || !strings.Contains(out, "the suite left no report") {
		t.Errorf("no report: status %d: %s", status, out)
	}
	if runs, _, err := readHistory(history); err != nil || len(runs) != 2 {
		t.Errorf("a night without a report is none in the history: %d runs, %v", len(runs), err)
	}
	if err := os.WriteFile(filepath.Join(dir, "e2e.json"), []byte(`[{"StartTime": "2026-11-22T01:00:00Z", "SuiteSucceeded": true, "SpecReports": []}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	for part, want := range map[string]string{"containers": "it did not run", "vms": "no spec ran"} {
		if status, out := call("-part", part, "-results", dir); status != 1 || !strings.Contains(out, want) {
			t.Errorf("nothing ran: status %d: %s", status, out)
		}
	}
}

func TestHistorySurvivesAKilledWriter(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "history.jsonl")
	if err := appendHistory(file, past(1, "c", "a passed 1")); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"time":"2026-1`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := appendHistory(file, past(0, "c", "a failed 1")); err != nil {
		t.Fatal(err)
	}
	runs, unread, err := readHistory(file)
	if err != nil || len(runs) != 2 || len(unread) != 1 || runs[0].Specs[0].Class != scenarios.Failed {
		t.Errorf("got %+v, %q, %v", runs, unread, err)
	}
	if runs, _, err := readHistory(filepath.Join(t.TempDir(), "none")); runs != nil || err != nil {
		t.Errorf("no file: %v, %v", runs, err)
	}
}

func TestLastResults(t *testing.T) {
	const table = "# x\n\n" + tableBegin + "\n| story | scenario | command | last result |\n|---|---|---|---|\n" +
		"| one | `missing-cni` | `labctl fault run missing-cni` | |\n" +
		"| two | `stale-cni`, `dead-containerd` | c | passed 2020-01-01 |\n" +
		"| three | `wiped-voter`, `kubelet-masked` | c | |\n" +
		"| four | kill it | c | |\n" + tableEnd + "\n\nmore\n"
	got, err := lastResults(table, someNights()[:8])
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "readme.md", got)
	if again, err := lastResults(got, someNights()[:8]); err != nil || again != got {
		t.Errorf("again: %v\n%s", err, again)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := lastResults(string(readme), someNights()); err != nil || !strings.Contains(text, "| not run yet |") || !strings.Contains(text, "| failed 2026-11-20 |") {
		t.Errorf("README.md: %v", err)
	}
	if _, err := lastResults("no table", nil); err == nil {
		t.Error("no error without a table")
	}
}

func TestTimes(t *testing.T) {
	elsewhere := past(12, "c", "dead-containerd passed 3")
	elsewhere.Where = "64 cores"
	got, err := times("# x\n\n"+timesBegin+"\nold\n"+timesEnd+"\n", append(someNights(), elsewhere), "2 cores")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# x\n\n" + timesBegin + "\n| fault |",
		"| `dead-containerd` | 9 of 11 | 0.0 s (0.0 s) | 1.0 s (1.0 s) | 9.7 s (10.0 s) | kubeadm refuses after 0.4 s |\n",
		"| `stale-learner` | 0 of 2 | – | – | – | kubeadm joins nothing: it fails after 122 s, with a time-out |\n",
		"|\n" + timesEnd + "\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "old") {
		t.Error("the old table is still there")
	}
	if _, err := times("no table", nil, ""); err == nil {
		t.Error("no error without a table")
	}
}

// A spec that was skipped has shown nothing, and is not among those that passed.
func TestSummaryCountsSkippedSpecsApart(t *testing.T) {
	r := Report{Run: Run{Specs: []Spec{
		{Name: "a", Class: scenarios.Passed}, {Name: "b", Class: scenarios.NotApplicable}, {Name: "c", Class: scenarios.Failed},
	}}}
	if got, want := r.summary(), "1 of 2 other specs passed; 1 not applicable"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Histories of earlier versions keep their times.
func TestEarlierHistory(t *testing.T) {
	const line = `{"time": "2026-11-20T01:00:00Z", "part": "containers", "specs": [{"name": "stale-cni", "scenario": true, "class": "passed", "node": "w2",
		"symptom": "cni-stale-config", "to_bite": 0.2, "to_cause": 3.4, "to_recover": 13.6, "seconds": 40}, {"name": "a spec", "class": "passed", "seconds": 3}]}`
	var r Run
	if err := json.Unmarshal([]byte(line), &r); err != nil || len(r.Specs) != 2 {
		t.Fatal(err)
	}
	e := r.Specs[0].Experiment
	if e.Node != "w2" || e.Detected.Cause != "cni-stale-config" || e.ToEffect != 0.2 || e.ToCause != 3.4 || e.ToRecover != 13.6 || r.Specs[1].Experiment.Fault != "" {
		t.Errorf("got %+v", r.Specs)
	}
	again, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var same Run
	if err := json.Unmarshal(again, &same); err != nil || same.Specs[0].Experiment.ToEffect != 0.2 {
		t.Errorf("%v: %+v", err, same)
	}
}
