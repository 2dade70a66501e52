package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func alone(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(names) {
		t.Fatalf("%v, %v, want %q", entries, err, names)
	}
	for i, e := range entries {
		if e.Name() != names[i] {
			t.Errorf("%s, want %s", e.Name(), names[i])
		}
	}
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, text := range []string{"old", "new"} {
		if err := Write(path, 0o640, []byte(text)); err != nil || content(t, path) != text {
			t.Errorf("%s: %v", text, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
	full := errors.New("no space left on device")
	err := Replace(path, Private, func(w io.Writer) error { return errors.Join(Write(filepath.Join(dir, "g"), Private, nil), full) })
	if !errors.Is(err, full) || content(t, path) != "new" {
		t.Errorf("%v, and it has %q", err, content(t, path))
	}
	Rename = func(string, string) error { return full }
	defer func() { Rename = os.Rename }()
	if err := Write(path, Private, []byte("newer")); !errors.Is(err, full) || content(t, path) != "new" {
		t.Errorf("%v, and it has %q", err, content(t, path))
	}
	alone(t, dir, "f", "g")
}

func TestOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	why := errors.New("no randomness")
	if _, err := Once(path, func() ([]byte, error) { return nil, why }); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	got := make([]string, 20)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			text, err := Once(path, func() ([]byte, error) { return fmt.Append(nil, i), nil })
			if err != nil {
				t.Error(err)
			}
			got[i] = string(text)
		})
	}
	wg.Wait()
	for i, text := range got {
		if text != got[0] || text == "" {
			t.Errorf("%d got %q, the first %q", i, text, got[0])
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != Private || content(t, path) != got[0] {
		t.Errorf("%v, %v", info, err)
	}
	alone(t, filepath.Dir(path), "f")
}

func TestExport(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	text := func(w io.Writer) error { _, err := io.WriteString(w, "text"); return err }
	if err := errors.Join(os.Symlink(path("file"), path("link")), os.Symlink(path("nothing"), path("dangling")), syscall.Mkfifo(path("fifo"), 0o600),
		os.Symlink(path("fifo"), path("stdout")), os.Mkdir(path("dir"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Export(path("file"), text); err != nil || content(t, path("file")) != "text" {
			t.Error(err)
		}
	}
	for _, name := range []string{"link", "dangling", "dir"} {
		before, _ := os.Lstat(path(name))
		if err := Export(path(name), text); err == nil || !strings.Contains(err.Error(), path(name)) {
			t.Errorf("%s: %v", name, err)
		}
		if after, err := os.Lstat(path(name)); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s was replaced: %v, %v", name, after, err)
		}
	}
	for _, name := range []string{"fifo", "stdout"} {
		read := make(chan string)
		go func() {
			got, _ := os.ReadFile(path("fifo"))
			read <- string(got)
		}()
		if err := Export(path(name), text); err != nil {
			t.Error(err)
		}
		if got := <-read; got != "text" {
			t.Errorf("%s: %q", name, got)
		}
		if info, err := os.Lstat(path("fifo")); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
			t.Errorf("it is now %v, %v", info, err)
		}
	}
	if err := Export(os.DevNull, text); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode()&fs.ModeCharDevice == 0 {
		t.Errorf("%s is now %v, %v", os.DevNull, info, err)
	}
}

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{temporary + "1", temporary + "2", "f"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Sweep(dir); err != nil {
		t.Error(err)
	}
	alone(t, dir, "f")
}

func TestCheckDir(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.Mkdir(path("good"), 0o755), os.Mkdir(path("open"), 0o700), os.Chmod(path("open"), 0o777), os.Mkdir(path("theirs"), 0o700),
		os.Symlink(path("good"), path("link")), os.WriteFile(path("file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"good": "", "open": "its mode is 0777", "link": "not a directory", "file": "not a directory", "none": "no such file"}
	if os.Geteuid() == 0 {
		if err := os.Chown(path("theirs"), 65534, 65534); err != nil {
			t.Fatal(err)
		}
		want["theirs"] = "belongs to another user"
	}
	for name, says := range want {
		if err := CheckDir(path(name)); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", name, err, says)
		}
	}
}
