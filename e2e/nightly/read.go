package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8slab/lab/symptom"
	"k8slab/scenarios"
)

// Run is one run of a part of the nightly.
type Run struct {
	Time    time.Time `json:"time"` // when it began
	Part    string    `json:"part"`
	Commit  string    `json:"commit,omitempty"`
	Where   string    `json:"where"`
	Seconds float64   `json:"seconds"`
	Trouble []string  `json:"trouble,omitempty"` // what failed that is no spec
	Specs   []Spec    `json:"specs"`
}

// Spec is a scenario, or another spec, of a run.
type Spec struct {
	Name       string           `json:"name"`
	Scenario   bool             `json:"scenario,omitempty"`
	Class      scenarios.Class  `json:"class"`
	Reason     string           `json:"reason,omitempty"`
	Experiment scenarios.Result `json:"experiment,omitzero"` // of a scenario
	Seconds    float64          `json:"seconds"`
}

// UnmarshalJSON also reads the lines of a history in which the times of an experiment were the spec's own.
func (s *Spec) UnmarshalJSON(data []byte) error {
	type plain Spec
	var read struct {
		plain
		Node      string     `json:"node"`
		Symptom   symptom.ID `json:"symptom"`
		ToEffect  float64    `json:"to_bite"`
		ToCause   float64    `json:"to_cause"`
		ToRecover float64    `json:"to_recover"`
	}
	err := json.Unmarshal(data, &read)
	if *s = Spec(read.plain); s.Experiment.Fault == "" && read.Node != "" {
		s.Experiment = scenarios.Result{Fault: s.Name, Node: read.Node, Class: s.Class, Detected: scenarios.Detection{Cause: read.Symptom},
			ToEffect: read.ToEffect, ToCause: read.ToCause, ToRecover: read.ToRecover, Seconds: s.Seconds}
	}
	return err
}

func (r Run) same(other Run) bool { return r.Part == other.Part && r.Time.Equal(other.Time) }

// spec is the run's spec of the name.
func (r Run) spec(name string) (Spec, bool) {
	i := slices.IndexFunc(r.Specs, func(s Spec) bool { return s.Name == name })
	if i < 0 {
		return Spec{}, false
	}
	return r.Specs[i], true
}

func (s Spec) failing() bool { return s.Class == scenarios.Failed || s.Class == scenarios.SetupFailed }

// suite is what is read of Ginkgo's report.
type suite struct {
	SuiteSucceeded             bool
	SpecialSuiteFailureReasons []string
	StartTime                  time.Time
	RunTime                    time.Duration
	SpecReports                []specReport
}

type specReport struct {
	ContainerHierarchyTexts           []string
	LeafNodeType, LeafNodeText, State string
	LeafNodeLabels                    []string
	RunTime                           time.Duration
	NumAttempts                       int
	Failure                           failure
	ReportEntries                     []struct {
		Name  string
		Value struct{ AsJSON string }
	}
}

type failure struct{ Message, FailureNodeType string }

// didNotRun is the reason of a spec that had to run.
const didNotRun = "it did not run"

// readRun reads a report of Ginkgo. A spec that had to run and did not is one that could not be set up.
func readRun(file string, expected []Spec) (Run, error) {
	s, err := readSuite(file)
	if err != nil {
		return Run{}, err
	}
	r := Run{Time: s.StartTime.UTC().Truncate(time.Second), Seconds: s.RunTime.Seconds(), Trouble: s.SpecialSuiteFailureReasons}
	for _, report := range s.SpecReports {
		switch {
		case report.LeafNodeType != "It":
			if report.State != "passed" && report.State != "skipped" {
				r.Trouble = append(r.Trouble, report.LeafNodeType+": "+short(report.Failure.Message))
			}
		case !report.leftOut():
			r.Specs = append(r.Specs, report.spec())
		}
	}
	if len(r.Specs) == 0 {
		r.Trouble = append(r.Trouble, "no spec ran")
	}
	if !s.SuiteSucceeded && len(r.Trouble) == 0 && !slices.ContainsFunc(r.Specs, Spec.failing) {
		r.Trouble = append(r.Trouble, "the suite failed, and no spec says why")
	}
	for _, s := range expected {
		if _, ran := r.spec(s.Name); !ran {
			r.Specs = append(r.Specs, Spec{Name: s.Name, Scenario: s.Scenario, Class: scenarios.SetupFailed, Reason: didNotRun})
		}
	}
	slices.SortStableFunc(r.Specs, func(a, b Spec) int {
		switch {
		case a.Scenario == b.Scenario:
			return strings.Compare(a.Name, b.Name)
		case a.Scenario:
			return -1
		}
		return 1
	})
	return r, nil
}

// readSuite reads the one suite of a report. One that left none, because it was not built or was killed, is a run with trouble too.
func readSuite(file string) (suite, error) {
	data, err := os.ReadFile(file)
	if _, elsewhere := os.Stat(filepath.Dir(file)); errors.Is(err, fs.ErrNotExist) && elsewhere == nil {
		return suite{StartTime: time.Now(), SpecialSuiteFailureReasons: []string{"the suite left no report"}}, nil
	}
	var suites []suite
	if err == nil {
		err = json.Unmarshal(data, &suites)
	}
	if err != nil {
		return suite{}, fmt.Errorf("%s: %w", file, err)
	}
	if len(suites) != 1 {
		return suite{}, fmt.Errorf("%s: it has %d suites, not 1", file, len(suites))
	}
	return suites[0], nil
}

// leftOut tells whether the run did not select the spec, or ended before it.
func (s specReport) leftOut() bool {
	return (s.State == "skipped" || s.State == "pending") && s.Failure.Message == ""
}

func (s specReport) spec() Spec {
	spec := Spec{Name: s.scenario(), Class: s.class(), Seconds: s.RunTime.Seconds(), Reason: short(s.Failure.Message)}
	if spec.Scenario = spec.Name != ""; !spec.Scenario {
		spec.Name = strings.Join(append(slices.Clone(s.ContainerHierarchyTexts), s.LeafNodeText), " ")
		return spec
	}
	for _, e := range s.ReportEntries {
		var c scenarios.Result
		if e.Name != "circle" || json.Unmarshal([]byte(e.Value.AsJSON), &c) != nil {
			continue
		}
		spec.Experiment, spec.Seconds = c, c.Seconds
		if c.Err() != nil {
			spec.Class, spec.Reason = c.Class, short(c.Reason)
		}
	}
	return spec
}

// scenario is the fault that the spec is about: its own label.
func (s specReport) scenario() string {
	for _, l := range s.LeafNodeLabels {
		if strings.HasPrefix(s.LeafNodeText, l+":") {
			return l
		}
	}
	return ""
}

// class is how the spec ended. One whose container failed before it began has shown nothing about the product.
func (s specReport) class() scenarios.Class {
	switch {
	case s.State == "passed":
		return scenarios.Passed
	case s.State == "skipped" && s.NumAttempts > 0:
		return scenarios.NotApplicable
	case s.State == "skipped", strings.HasPrefix(s.Failure.FailureNodeType, "Before"):
		return scenarios.SetupFailed
	}
	return scenarios.Failed
}

const longestReason = 600

// short is a message as one line that fits a report.
func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > longestReason {
		s = string(runes[:longestReason]) + "…"
	}
	return s
}
