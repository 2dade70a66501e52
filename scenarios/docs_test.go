package scenarios

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"

	"k8slab/lab/golden"
)

// The document lists every fault as it is, and every symptom without one.
func TestDocument(t *testing.T) {
	const document = "../docs/faults.md"
	var table strings.Builder
	table.WriteString("| fault | story | made on | symptom | recovery | clusters that exist |\n|---|---|---|---|---|---|\n")
	for _, f := range All() {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s | %s |\n", f.Name, f.Story, where(f), named(f),
			recovery(f), cmp.Or(f.LabsOnly(), "yes"))
	}
	golden.CheckBlock(t, document, "faults", table.String())

	var reasons strings.Builder
	reasons.WriteString("| symptom | why there is no fault |\n|---|---|\n")
	for _, w := range WithoutScenario() {
		fmt.Fprintf(&reasons, "| `%s` | %s |\n", w.Symptom, w.Reason)
	}
	golden.CheckBlock(t, document, "symptoms without a fault", reasons.String())
}

// The README's commands are calls of faults that there are.
func TestReadmeNamesFaults(t *testing.T) {
	data, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(data)) {
		_, command, found := strings.Cut(line, "`bin/labctl fault run ")
		if !found {
			continue
		}
		rows++
		command, _, _ = strings.Cut(command, "`")
		for name := range strings.FieldsSeq(command) {
			if _, known := Lookup(name); !known {
				t.Errorf("no fault %q: %s", name, line)
			}
		}
	}
	if rows < 5 {
		t.Errorf("%d rows", rows)
	}
}

// named is how the diagnosis names the fault.
func named(f Fault) string {
	switch {
	case f.Symptom == "":
		return "none: it passes by itself"
	case f.Detail == "":
		return "`" + string(f.Symptom) + "`"
	}
	return "`" + string(f.Symptom) + "`, `" + f.Detail + "`"
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
	text := strings.Join(calls, ", ")
	switch {
	case len(f.Recover) == 0:
		text = "by hand: " + f.ByHand
	case f.ByHand != "":
		text = "[" + text + "], by hand: " + f.ByHand
	case f.Stops():
		text = "[" + text + "] after " + f.Remedy.Text
	}
	return text
}
