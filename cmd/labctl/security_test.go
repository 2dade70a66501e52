package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPromisesAreTested compares docs/security.md with the code: each promise names tests, and the tests are there.
func TestPromisesAreTested(t *testing.T) {
	tests := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllSubmatch(text, -1) {
			tests[string(m[1])] = true
		}
		for _, m := range regexp.MustCompile(`(?:Describe|It)\("([^"]+)"`).FindAllSubmatch(text, -1) {
			tests[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	promises := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 3 || strings.HasPrefix(cells[0], " promise") {
			continue
		}
		promises++
		named := regexp.MustCompile("`((?:Test|Fuzz)[^`]+)`|e2e: ([^;]+)").FindAllStringSubmatch(strings.TrimSpace(cells[2]), -1)
		if len(named) == 0 {
			t.Errorf("no test: %s", line)
		}
		for _, m := range named {
			if spec := strings.TrimSpace(m[2]); spec != "" && !begins(tests, spec) {
				t.Errorf("no such spec: %q", spec)
			} else if spec == "" && !tests[m[1]] {
				t.Errorf("no such test: %s", m[1])
			}
		}
	}
	if promises < 10 {
		t.Errorf("%d promises", promises)
	}
}

// begins tells whether one of the names begins with the text.
func begins(names map[string]bool, text string) bool {
	for name := range names {
		if strings.HasPrefix(name, text) {
			return true
		}
	}
	return false
}
