package main

import (
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestMeasure(t *testing.T) {
	for _, test := range []struct {
		name  string
		lines int
		loop  []string // nil: no file needs one that needs it
	}{
		{"loop", 21, []string{"method.go", "twice.go"}},
		{"chain", 14, nil},
	} {
		paths, err := filepath.Glob(filepath.Join("testdata", test.name, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: no files: %v", test.name, err)
		}
		got, err := measure(token.NewFileSet(), &types.Config{}, test.name, paths)
		if err != nil {
			t.Fatal(err)
		}
		if test.loop == nil && len(got.loop) == 1 {
			got.loop = nil
		}
		if got.lines != test.lines || got.files != len(paths) || !slices.Equal(got.loop, test.loop) {
			t.Errorf("%s: %+v, want %d lines and the loop %v", test.name, got, test.lines, test.loop)
		}
	}
}

func TestLargestLoop(t *testing.T) {
	edges := map[string][]string{
		"a": {"b"}, "b": {"a", "c"}, // a small loop leads to a large one
		"c": {"d"}, "d": {"e", "f"}, "e": {"c"}, "f": {"d"},
		"g": {"a", "f"}, // nothing leads back
	}
	if got := strings.Join(largestLoop(edges), ""); got != "cdef" {
		t.Errorf("got %s, want cdef", got)
	}
}

func TestCheck(t *testing.T) {
	files := func(n int) []string { return slices.Repeat([]string{"x.go"}, n) }
	for _, test := range []struct {
		name  string
		size  size
		limit int // 0 is none
		want  string
	}{
		{"small", size{loop: files(2)}, 0, ""},
		{"too large", size{loop: files(3)}, 0, "p: 3 files need each other, at most 2 may: x.go x.go x.go"},
		{"exception", size{loop: files(4)}, 4, ""},
		{"worse than its exception", size{loop: files(5)}, 4, "at most 4 may"},
		{"better than its exception", size{loop: files(3)}, 4, "lower its limit of 4"},
		{"no exception any more", size{loop: files(2)}, 4, "remove its limit of 4"},
		{"too long", size{loop: files(1), lines: 11}, 0, "p: 11 lines, at most 10 may be"},
	} {
		test.size.path = "p"
		loops := map[string]int{}
		if test.limit > 0 {
			loops["p"] = test.limit
		}
		err := check([]size{test.size}, 2, loops, map[string]int{"p": 10})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
	if err := check(nil, 2, map[string]int{"gone": 3}, nil); err == nil {
		t.Error("a limit of a package that is gone passes")
	}
}
