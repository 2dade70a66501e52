package main

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8slab/scenarios"
)

func TestJUnit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "fault-run.xml")
	results := []scenarios.Result{
		{Fault: "missing-cni", Node: "w1", Class: scenarios.Passed, Seconds: 20.5},
		{Fault: "stale-cni", Node: "w2", Class: scenarios.Failed, Reason: "expected <cni> & \"more\"\nkubeadm join --token abcdef.0123456789abcdef \x1b[1m", Seconds: 61},
		{Fault: "wiped-voter", Class: scenarios.NotApplicable, Reason: "the lab has one control plane"},
		{Fault: "disk-full", Node: "w1", Class: scenarios.SetupFailed, Reason: "the lab is not healthy", Seconds: 1},
	}
	if err := (junitFile{path: file}).write("fault-run", results); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got junitSuites
	if err := xml.Unmarshal(data, &got); err != nil || len(got.Suites) != 1 {
		t.Fatalf("%v in\n%s", err, data)
	}
	s := got.Suites[0]
	if s.Tests != 4 || s.Failures != 1 || s.Errors != 1 || s.Skipped != 1 || s.Time != "82.500" || s.Name != "labctl fault-run" {
		t.Errorf("got %+v", s)
	}
	passed, failed, skipped, broken := s.Cases[0], s.Cases[1], s.Cases[2], s.Cases[3]
	if passed.Name != "missing-cni on w1" || passed.Time != "20.500" || passed.Failure != nil || passed.Error != nil || passed.Skipped != nil {
		t.Errorf("passed: %+v", passed)
	}
	if failed.Failure == nil || !strings.Contains(failed.Failure.Text, `expected <cni> & "more"`+"\n") || strings.Contains(string(data), "0123456789abcdef") {
		t.Errorf("failed: %+v", failed.Failure)
	}
	if skipped.Name != "wiped-voter" || skipped.Skipped == nil || skipped.Skipped.Message != "the lab has one control plane" {
		t.Errorf("not applicable: %+v", skipped)
	}
	if broken.Error == nil || broken.Error.Message != "the lab is not healthy" || broken.Failure != nil {
		t.Errorf("setup failed: %+v", broken)
	}
	if err := (junitFile{}).write("soak", results); err != nil {
		t.Errorf("without a file: %v", err)
	}
}
