package image

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func packed(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestUnpack(t *testing.T) {
	home(t)
	path, err := Unpack("tool", packed(t, "one"))
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want string) os.FileInfo {
		t.Helper()
		text, err := os.ReadFile(path)
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil || string(text) != want || info.Mode() != 0o755 {
			t.Fatalf("%q, %v, %v, %v", text, info.Mode(), err, statErr)
		}
		return info
	}
	first := expect("one")
	if again, err := Unpack("tool", packed(t, "one")); err != nil || again != path || !os.SameFile(first, expect("one")) {
		t.Errorf("it was written twice: %s, %v", again, err)
	}
	if other, err := Unpack("tool", packed(t, "two")); err != nil || other == path {
		t.Errorf("another program is at the same path: %s, %v", other, err)
	}
	if err := os.WriteFile(path, []byte("changed"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Unpack("tool", packed(t, "one")); err != nil {
		t.Fatal(err)
	}
	expect("one")
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("left %v", left)
	}
	if _, err := Unpack("tool", []byte("no gzip")); err == nil || !strings.Contains(err.Error(), "unpack tool") {
		t.Errorf("got %v", err)
	}
}

func TestUnpackIntoADirectoryOfOthers(t *testing.T) {
	home(t)
	path, err := Unpack("tool", packed(t, "one"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(path)
	refused := func(what, why string) {
		t.Helper()
		if _, err := Unpack("tool", packed(t, "one")); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	refused("writable by all", "other users can change")
	if err := os.Rename(dir, dir+".moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir+".moved", dir); err != nil {
		t.Fatal(err)
	}
	refused("a link", "is not a directory")
}
