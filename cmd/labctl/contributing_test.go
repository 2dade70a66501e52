package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestContributing compares CONTRIBUTING.md with the code: what it names is there, and its map has every package below lab.
func TestContributing(t *testing.T) {
	const top = "../.."
	data, err := os.ReadFile(filepath.Join(top, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	named := map[string]bool{}
	for word := range strings.FieldsSeq(page) {
		path := strings.Trim(word, "`(),.:;'/") // also what says below: ./lab/...
		first, _, below := strings.Cut(path, "/")
		placeholder := strings.Contains(path, "NAME") || strings.Contains(path, "WHAT")
		if !below || placeholder || !slices.Contains([]string{"cmd", "config", "docs", "e2e", "lab", "scenarios", "ci"}, first) {
			continue
		}
		if first == "ci" { // its dot was trimmed
			path = "." + path
		}
		if found, err := filepath.Glob(filepath.Join(top, path)); err != nil || len(found) == 0 {
			t.Errorf("no such file or package: %s", word)
		}
		named[path] = true
	}
	if len(named) < 60 {
		t.Errorf("%d paths: %v", len(named), named)
	}
	for _, m := range regexp.MustCompile(`-run (Test\w+)`).FindAllStringSubmatch(page, -1) {
		if !declares(t, top, m[1]) {
			t.Errorf("no such test: %s", m[1])
		}
	}
	beginning, _, _ := strings.Cut(page, "How three commands")
	err = filepath.WalkDir(filepath.Join(top, "lab"), func(path string, d fs.DirEntry, err error) error {
		sources, _ := filepath.Glob(filepath.Join(path, "*.go"))
		pkg, _ := filepath.Rel(top, path)
		if err == nil && len(sources) > 0 && !strings.Contains(path, "testdata") && !regexp.MustCompile(`[\s(]`+pkg+`[\s,]`).MatchString(beginning) {
			t.Errorf("the map has no %s", pkg)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// declares tells whether a package has the test.
func declares(t *testing.T, top, test string) (found bool) {
	t.Helper()
	err := filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || found || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		found = strings.Contains(string(text), "\nfunc "+test+"(")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
