package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"k8slab/lab/event"
	"k8slab/scenarios"
)

// junitFile is where the results of faults are written for a CI system.
type junitFile struct {
	path  string
	force bool
}

func (j *junitFile) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&j.path, "junit", "", "also write the results to this `FILE`, as JUnit XML")
	cmd.Flags().BoolVar(&j.force, "force", false, "replace the files of results if they exist")
}

func (j junitFile) check() error { return newFile(j.path, j.force) }

// write does nothing without a path. suite names the command.
func (j junitFile) write(suite string, results []scenarios.Result) error {
	if j.path == "" {
		return nil
	}
	data, err := xml.MarshalIndent(junitOf(suite, results), "", "  ")
	if err == nil {
		err = os.WriteFile(j.path, append([]byte(xml.Header), append(data, '\n')...), 0o644)
	}
	if err != nil {
		return fmt.Errorf("--junit: %w", err)
	}
	return nil
}

// resultFiles are where a report is written: for a CI system, and whole.
type resultFiles struct {
	junitFile
	results string
}

func (f *resultFiles) flags(cmd *cobra.Command) {
	f.junitFile.flags(cmd)
	cmd.Flags().StringVar(&f.results, "results", "", "also write the results to this `FILE`, as -o json prints them")
}

func (f resultFiles) check() error {
	return errors.Join(f.junitFile.check(), newFile(f.results, f.force))
}

func (f resultFiles) write(suite string, report scenarios.Report) error {
	err := f.junitFile.write(suite, report.Results)
	if f.results == "" {
		return err
	}
	data, failed := json.MarshalIndent(report, "", "  ")
	if failed == nil {
		failed = os.WriteFile(f.results, append(data, '\n'), 0o644)
	}
	if failed != nil {
		failed = fmt.Errorf("--results: %w", failed)
	}
	return errors.Join(err, failed)
}

// The elements of JUnit XML that are used here.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitMessage `xml:"failure"`
		Error   *junitMessage `xml:"error"`
		Skipped *junitMessage `xml:"skipped"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// junitOf makes a test case of each result: Failed is a failure, SetupFailed an error.
func junitOf(suite string, results []scenarios.Result) junitSuites {
	s := junitSuite{Name: "labctl " + suite, Tests: len(results)}
	total := 0.0
	for _, r := range results {
		c := junitCase{Name: r.Fault, Class: "labctl." + suite, Time: junitSeconds(r.Seconds)}
		if r.Node != "" {
			c.Name += " on " + r.Node
		}
		reason := event.Redact(r.Reason)
		said := &junitMessage{Message: event.OneLine(reason), Text: reason}
		switch r.Class {
		case scenarios.Passed:
		case scenarios.NotApplicable:
			c.Skipped, s.Skipped = &junitMessage{Message: said.Message}, s.Skipped+1
		case scenarios.Failed:
			c.Failure, s.Failures = said, s.Failures+1
		default:
			c.Error, s.Errors = said, s.Errors+1
		}
		s.Cases = append(s.Cases, c)
		total += r.Seconds
	}
	s.Time = junitSeconds(total)
	return junitSuites{Suites: []junitSuite{s}}
}

func junitSeconds(s float64) string { return fmt.Sprintf("%.3f", s) }
