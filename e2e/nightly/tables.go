package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"k8slab/scenarios"
)

// The lines that a table is between. The one of last results has in its last column the last result of the scenarios that its row names in
// backticks, and the one of times is written whole.
const (
	tableBegin, tableEnd = "<!-- last results -->", "<!-- end of last results -->"
	timesBegin, timesEnd = "<!-- times -->", "<!-- end of times -->"
)

var inBackticks = regexp.MustCompile("`([^`]+)`")

// rewrite brings a file up to date.
func rewrite(file string, change func(text string) (string, error)) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, err := change(string(data))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// between cuts a text around what is between two lines.
func between(text, begin, end string) (before, table, after string, err error) {
	before, rest, found := strings.Cut(text, begin+"\n")
	table, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "", "", "", fmt.Errorf("no table between %q and %q", begin, end)
	}
	return before + begin + "\n", table, end + after, nil
}

func lastResults(text string, history []Run) (string, error) {
	before, table, after, err := between(text, tableBegin, tableEnd)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimSuffix(table, "\n"), "\n") {
		cells := strings.Split(line, "|")
		if i > 1 && len(cells) > 3 {
			cells[len(cells)-2] = " " + lastOf(line, history) + " "
		}
		b.WriteString(strings.Join(cells, "|") + "\n")
	}
	return before + b.String() + after, nil
}

// lastOf is the last result, in the part that makes them all, of the scenarios that the line names: the worst of them, with its date.
func lastOf(line string, history []Run) string {
	worst, date := scenarios.Class(""), ""
	for _, name := range inBackticks.FindAllStringSubmatch(line, -1) {
		if _, known := scenarios.Lookup(name[1]); !known {
			continue
		}
		class, on := scenarios.Class("not run yet"), ""
		for _, run := range slices.Backward(history) {
			if s, ran := run.spec(name[1]); ran && s.Scenario && run.Part == allApply {
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
	return slices.Index([]scenarios.Class{scenarios.Passed, scenarios.NotApplicable, "not run yet", scenarios.SetupFailed, scenarios.Failed}, c)
}

// times is the text with a table of how long each scenario took in the runs on such a computer that it passed in: the median, and the longest.
func times(text string, history []Run, where string) (string, error) {
	before, _, after, err := between(text, timesBegin, timesEnd)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("| fault | passed | effect after | named after | recovered after | without labctl |\n|---|---|---|---|---|---|\n")
	for _, f := range scenarios.All() {
		if f.Upgrade != "" { // each ends a lab's version: docs/versions.md has them
			continue
		}
		var effects, named, recovered []float64
		ran := 0
		for _, run := range history {
			s, found := run.spec(f.Name)
			if !found || run.Part != "containers" || run.Where != where || s.Class == scenarios.NotApplicable {
				continue
			}
			if ran++; s.Class == scenarios.Passed {
				effects, named, recovered = append(effects, s.Experiment.ToEffect), append(named, s.Experiment.ToCause), append(recovered, s.Experiment.ToRecover)
			}
		}
		fmt.Fprintf(&b, "| `%s` | %d of %d | %s | %s | %s | %s |\n", f.Name, len(effects), ran, seconds(effects), seconds(named), seconds(recovered), f.WithoutLabctl())
	}
	return before + b.String() + after, nil
}

// seconds are the median of some, and the longest if there are several.
func seconds(all []float64) string {
	switch len(all) {
	case 0:
		return "–"
	case 1:
		return fmt.Sprintf("%.1f s", all[0])
	}
	return fmt.Sprintf("%.1f s (%.1f s)", middle(all), slices.Max(all))
}
