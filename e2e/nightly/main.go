// nightly turns what a nightly run of the end-to-end specs left into a report, and compares it with earlier runs.
//
//	nightly -part containers -results e2e/results   reads e2e.json there, writes nightly-containers.json and .html, appends to the history
//	nightly -readme README.md                       writes the last result of each scenario into the table of the README
//	nightly -times docs/faults.md                   writes how long each scenario took into the table there
//
// Exit status: 0 nothing fails and nothing is newly slow, 1 something is, 2 wrong usage or unreadable files.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"k8slab/lab/state"
	"k8slab/scenarios"
)

// parts are what a nightly can run.
var parts = []string{"wide", "containers", "vms", "onboard", "hosts", "foreign", "versions"}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

type options struct{ part, results, history, commit, where, readme, times string }

func run(args []string, stdout, stderr io.Writer) int {
	o := options{}
	flags := flag.NewFlagSet("nightly", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.part, "part", "", "what ran: "+strings.Join(parts, " or "))
	flags.StringVar(&o.results, "results", "e2e/results", "directory of e2e.json, and of the reports")
	flags.StringVar(&o.history, "history", "", "file of earlier runs; the default is in the state directory")
	flags.StringVar(&o.commit, "commit", "", "what was tested")
	flags.StringVar(&o.where, "where", fmt.Sprintf("%d cores", runtime.NumCPU()), "the computer: only times of the same are compared")
	flags.StringVar(&o.readme, "readme", "", "only write the last results into the table of this file")
	flags.StringVar(&o.times, "times", "", "only write the times of all runs into the table of this file")
	if flags.Parse(args) != nil {
		return 2
	}
	regression, err := o.run(stdout, stderr)
	switch {
	case err != nil:
		_, _ = fmt.Fprintln(stderr, "nightly:", err)
		return 2
	case regression:
		return 1
	}
	return 0
}

func (o options) run(stdout, stderr io.Writer) (regression bool, err error) {
	if o.history == "" {
		dir, err := state.Root()
		if err != nil {
			return false, err
		}
		o.history = filepath.Join(dir, ".nightly", "history.jsonl") // no lab has a name with a dot
	}
	history, unread, err := readHistory(o.history)
	for _, line := range unread {
		_, _ = fmt.Fprintf(stderr, "nightly: %s: a line that is no run, left out: %.60s\n", o.history, line)
	}
	switch {
	case err != nil:
		return false, err
	case o.readme != "":
		return false, rewrite(o.readme, func(text string) (string, error) { return lastResults(text, history) })
	case o.times != "":
		return false, rewrite(o.times, func(text string) (string, error) { return times(text, history, o.where) })
	case !slices.Contains(parts, o.part):
		return false, fmt.Errorf("-part %q: use %s", o.part, strings.Join(parts, " or "))
	}
	report, err := o.report(history)
	if err != nil {
		return false, err
	}
	_, err = io.WriteString(stdout, report.text())
	return report.Regression, err
}

// report reads the run, compares it, writes the files and the history.
func (o options) report(history []Run) (r Report, err error) {
	night, err := readRun(filepath.Join(o.results, "e2e.json"), o.expected(history))
	if err != nil {
		return r, err
	}
	night.Part, night.Commit, night.Where = o.part, o.commit, o.where
	known := slices.ContainsFunc(history, night.same)
	r = compare(night, history)
	base := filepath.Join(o.results, "nightly-"+o.part)
	r.Page = base + ".html"
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return r, err
	}
	page, err := r.html(func(name string) string { f, _ := scenarios.Lookup(name); return f.Story })
	if err != nil {
		return r, err
	}
	err = errors.Join(os.WriteFile(base+".json", append(data, '\n'), 0o600), os.WriteFile(r.Page, page, 0o600))
	if !known { // a report that is made again is no further run
		err = errors.Join(err, appendHistory(o.history, night))
	}
	return r, err
}

// expected are the specs that must have run: what the part's last run had in which any ran, and all scenarios on containers. One that is gone for
// good is missed once.
func (o options) expected(history []Run) (specs []Spec) {
	if o.part == allApply {
		for _, f := range scenarios.All() {
			if f.Upgrade != "" { // the part versions has them
				continue
			}
			specs = append(specs, Spec{Name: f.Name, Scenario: true})
		}
	}
	for _, run := range slices.Backward(history) {
		had := slices.DeleteFunc(slices.Clone(run.Specs), func(s Spec) bool { return s.Reason == didNotRun })
		if run.Part == o.part && len(had) > 0 {
			return append(specs, had...)
		}
	}
	return specs
}
