package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"k8slab/scenarios"
)

// Between these lines is a table whose last column is the last result of the scenarios that its row names in backticks.
const tableBegin, tableEnd = "<!-- last results -->", "<!-- end of last results -->"

var inBackticks = regexp.MustCompile("`([^`]+)`")

// writeLastResults brings the last column of the file's table up to date.
func writeLastResults(file string, history []Run) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, err := lastResults(string(data), history)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

func lastResults(text string, history []Run) (string, error) {
	before, rest, found := strings.Cut(text, tableBegin+"\n")
	table, after, closed := strings.Cut(rest, tableEnd)
	if !found || !closed {
		return "", fmt.Errorf("no table between %q and %q", tableBegin, tableEnd)
	}
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimSuffix(table, "\n"), "\n") {
		cells := strings.Split(line, "|")
		if i > 1 && len(cells) > 3 {
			cells[len(cells)-2] = " " + lastOf(line, history) + " "
		}
		b.WriteString(strings.Join(cells, "|") + "\n")
	}
	return before + tableBegin + "\n" + b.String() + tableEnd + after, nil
}

// lastOf is the last result of the scenarios that the line names: the worst of them, with its date.
func lastOf(line string, history []Run) string {
	worst, date := scenarios.Class(""), ""
	for _, name := range inBackticks.FindAllStringSubmatch(line, -1) {
		if _, known := scenarios.Lookup(name[1]); !known {
			continue
		}
		class, on := scenarios.Class("not run yet"), ""
		for _, run := range slices.Backward(history) {
			if s, ran := run.spec(name[1]); ran && s.Scenario {
				class, on = s.Class, run.Time.Format("2006-01-02")
				break
			}
		}
		if worst == "" || badness(class) > badness(worst) {
			worst, date = class, on
		}
	}
	return strings.TrimSpace(string(worst) + " " + date)
}

func badness(c scenarios.Class) int {
	return slices.Index([]scenarios.Class{scenarios.NotApplicable, scenarios.Passed, "not run yet", scenarios.SetupFailed, scenarios.Failed}, c)
}
