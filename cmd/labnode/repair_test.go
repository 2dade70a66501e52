package main

import (
	"strings"
	"testing"
)

// Scripts that call `labnode mend` go on working; help shows one name only.
func TestRepairKeepsItsFormerName(t *testing.T) {
	root := new(app).rootCommand()
	now, _, err := root.Find([]string{"repair"})
	before, _, errBefore := root.Find([]string{"mend"})
	if err != nil || errBefore != nil || now.Name() != "repair" || before.Name() != "mend" || before.Flags().Lookup("dry-run") == nil {
		t.Fatal(now, err, before, errBefore)
	}
	if usage := root.UsageString(); !strings.Contains(usage, "repair") || strings.Contains(usage, "mend ") {
		t.Errorf("help shows\n%s", usage)
	}
}
