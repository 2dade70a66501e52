// summary counts what ran: the tests in go test's JSON stream and the specs in ginkgo's JSON report.
//
//	summary text                 copies go test's JSON from stdin to stdout as the text that it stands for
//	summary packages TEST        prints go test's line of each package
//	summary failures SPECS       prints why each spec failed, which ginkgo's own summary leaves out
//	summary count TEST SPECS     ends with "N passed, M failed" and fails unless something ran and all of it passed
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

func main() {
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 1 && args[0] == "text":
		err = text(os.Stdin, os.Stdout)
	case len(args) == 2 && args[0] == "packages":
		err = packages(args[1], os.Stdout)
	case len(args) == 2 && args[0] == "failures":
		err = failures(args[1], os.Stdout)
	case len(args) == 3 && args[0] == "count":
		err = count(args[1], args[2])
	default:
		err = errors.New("usage: summary text | summary packages TEST | summary failures SPECS | summary count TEST SPECS")
	}
	if err != nil {
		if !errors.Is(err, errFailed) {
			fmt.Fprintln(os.Stderr, "summary:", err)
		}
		os.Exit(1)
	}
}

// line is one of go test's JSON stream.
type line struct {
	Action, Package, Test, Output string
}

// text shows packages and failed tests; what passed is only counted.
func text(r io.Reader, w io.Writer) error {
	kept := map[string]string{} // output of a test until it is known to have passed
	return eachLine(r, func(l line) {
		key := l.Package + " " + l.Test
		switch {
		case l.Action == "output" && l.Test == "", l.Action == "build-output":
			_, _ = io.WriteString(w, l.Output)
		case l.Action == "output":
			kept[key] += l.Output
		case l.Action == "fail" && l.Test != "":
			_, _ = io.WriteString(w, kept[key]+races(kept[key]))
			delete(kept, key)
		case l.Action == "pass", l.Action == "skip":
			delete(kept, key)
		}
	}, func(raw string) { _, _ = fmt.Fprintln(w, raw) })
}

// races says each data race of an output again, one line for each stack with its files and lines: what shows an output in part shows these.
func races(output string) string {
	var b strings.Builder
	for _, race := range strings.Split(output, "WARNING: DATA RACE\n")[1:] {
		race, _, _ = strings.Cut(race, "\n=====")
		for stack := range strings.SplitSeq(race, "\n\n") {
			what, frames, _ := strings.Cut(strings.TrimSpace(stack), "\n")
			_, _ = fmt.Fprintf(&b, "race: %s %s\n", what, strings.Join(place.FindAllString(frames, 12), " < "))
		}
	}
	return b.String()
}

// place is a file and a line in a stack, without the directories that are the same for all of them.
var place = regexp.MustCompile(`[^/\s]+/[^/\s]+\.go:[0-9]+`)

// packages are the lines that go test ends each package with.
func packages(file string, w io.Writer) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	verdict := regexp.MustCompile(`^(ok|FAIL|---|\?)\s.*\S`)
	return eachLine(f, func(l line) {
		if l.Action == "output" && l.Test == "" && verdict.MatchString(l.Output) {
			_, _ = io.WriteString(w, l.Output)
		}
	}, func(string) {})
}

func eachLine(r io.Reader, see func(line), other func(string)) error {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		var l line
		if json.Unmarshal(s.Bytes(), &l) == nil && l.Action != "" {
			see(l)
		} else {
			other(s.Text())
		}
	}
	return s.Err()
}

func count(testFile, specFile string) error {
	tests, testErr := countTests(testFile)
	specs, specErr := countSpecs(specFile)
	passed, failed := tests.passed+specs.passed, tests.failed+specs.failed
	err := errors.Join(testErr, specErr)
	if err == nil && (tests.passed == 0 || specs.passed == 0) {
		err = errors.New("no tests or no specs ran")
		failed = max(failed, 1)
	}
	fmt.Printf("tests: %d passed, %d failed; specs: %d passed, %d failed\n", tests.passed, tests.failed, specs.passed, specs.failed)
	if err != nil {
		fmt.Println("summary:", err)
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		return errFailed
	}
	return nil
}

// errFailed has been said: the count is the last line.
var errFailed = errors.New("failed")

type tally struct{ passed, failed int }

// countTests counts tests with their subtests. A package that fails without a failed test, because it does not build or panics, counts as
// one failure.
func countTests(file string) (t tally, err error) {
	f, err := os.Open(file)
	if err != nil {
		return tally{failed: 1}, err
	}
	defer func() { _ = f.Close() }()
	explained := map[string]bool{}
	err = eachLine(f, func(l line) {
		switch {
		case l.Action == "pass" && l.Test != "":
			t.passed++
		case l.Action == "fail" && l.Test != "":
			t.failed++
			explained[l.Package] = true
		case l.Action == "fail" && !explained[l.Package]:
			t.failed++
		}
	}, func(string) {})
	return t, err
}

// suite is what ginkgo's JSON report says of one.
type suite struct {
	SuiteSucceeded bool
	SpecReports    []spec
}

type spec struct {
	LeafNodeType, LeafNodeText, State string
	Failure                           struct{ Message string }
}

func (s spec) failed() bool { return s.State != "passed" && s.State != "skipped" }

func suites(file string) (s []suite, err error) {
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

func failures(file string, w io.Writer) error {
	all, err := suites(file)
	for _, s := range all {
		for _, r := range s.SpecReports {
			if r.failed() {
				_, _ = fmt.Fprintf(w, "%s: %s: %.1500s\n", r.State, r.LeafNodeText, r.Failure.Message)
			}
		}
	}
	return err
}

// countSpecs counts specs, and what fails around them (BeforeSuite).
func countSpecs(file string) (t tally, err error) {
	all, err := suites(file)
	if err != nil {
		return tally{failed: 1}, err
	}
	for _, s := range all {
		failed := 0
		for _, r := range s.SpecReports {
			switch {
			case r.State == "passed" && r.LeafNodeType == "It":
				t.passed++
			case r.failed():
				failed++
			}
		}
		if !s.SuiteSucceeded {
			failed = max(failed, 1)
		}
		t.failed += failed
	}
	return t, nil
}
