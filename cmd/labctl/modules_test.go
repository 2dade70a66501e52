package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// TestModulesAreAccountedFor compares docs/dependencies.md with go.mod: a module comes in with its reason, or not at all.
func TestModulesAreAccountedFor(t *testing.T) {
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(mod.Replace) > 0 {
		t.Errorf("go.mod replaces %s", mod.Replace[0].Old.Path)
	}
	required := map[bool][]string{} // by whether they are indirect
	for _, r := range mod.Require {
		required[r.Indirect] = append(required[r.Indirect], r.Mod.Path)
	}
	page, err := os.ReadFile("../../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	direct, unmaintained, _ := strings.Cut(string(page), "## Unmaintained")
	if got := rows(direct); !slices.Equal(got, slices.Sorted(slices.Values(required[false]))) {
		t.Errorf("docs/dependencies.md has rows, sorted, for\n%q, go.mod requires\n%q", got, required[false])
	}
	for _, m := range rows(unmaintained) {
		if !slices.Contains(required[true], m) {
			t.Errorf("docs/dependencies.md names %s as indirect, which go.mod does not have", m)
		}
	}
}

var row = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

func rows(table string) (modules []string) {
	for _, m := range row.FindAllStringSubmatch(table, -1) {
		modules = append(modules, m[1])
	}
	return modules
}
