package scenarios

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"k8slab/lab/golden"
)

// The document lists every fault as it is, and every symptom without one.
func TestDocument(t *testing.T) {
	const document = "../docs/faults.md"
	var table strings.Builder
	table.WriteString("| fault | story | made on | symptom | recovery |\n|---|---|---|---|---|\n")
	for _, f := range All() {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s |\n", f.Name, f.Story, where(f), code(string(f.Symptom), "none: it passes by itself"), recovery(f))
	}
	golden.CheckBlock(t, document, "faults", table.String())

	var reasons strings.Builder
	reasons.WriteString("| symptom | why there is no fault |\n|---|---|\n")
	for _, w := range WithoutScenario() {
		fmt.Fprintf(&reasons, "| `%s` | %s |\n", w.Symptom, w.Reason)
	}
	golden.CheckBlock(t, document, "symptoms without a fault", reasons.String())
}

func code(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return "`" + s + "`"
}

// where says what kind of node the fault is made on.
func where(f Fault) string {
	var roles []string
	for _, r := range f.Roles {
		roles = append(roles, string(r))
	}
	on := strings.Join(roles, ", ")
	if f.Outside {
		on += ", reset"
	}
	return on
}

func recovery(f Fault) string {
	var calls []string
	for _, c := range f.Calls(Node) {
		calls = append(calls, "`"+strings.Join(c, " ")+"`")
	}
	text := cmp.Or(strings.Join(calls, ", "), "–")
	if f.Stops {
		text = "[" + text + "]"
	}
	return text
}
