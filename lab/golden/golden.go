// Package golden compares what a test got with a file of its testdata. `go test -update` writes the files anew.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Check fails the test unless got is what testdata/name has.
func Check(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update rewrites it)\ngot:\n%s\nwant:\n%s", name, got, want)
	}
}

// CheckBlock is Check for the part of a document between the lines `<!-- NAME -->` and `<!-- end of NAME -->`.
func CheckBlock(t *testing.T, path, name, got string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
	before, rest, found := strings.Cut(string(data), begin)
	want, after, closed := strings.Cut(rest, end)
	switch {
	case !found || !closed:
		t.Fatalf("%s has no lines %q and %q", path, begin, end)
	case got == want:
	case *update:
		if err := os.WriteFile(path, []byte(before+begin+got+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s, %s is out of date (go test -update rewrites it)\ngot:\n%s\nwant:\n%s", path, name, got, want)
	}
}
