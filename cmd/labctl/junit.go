package main

import (
	"encoding/xml"
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
	cmd.Flags().BoolVar(&j.force, "force", false, "replace the file of --junit if it exists")
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
