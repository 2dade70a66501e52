package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8slab/lab/health"
	"k8slab/lab/provision"
)

func TestImageLoadWithoutALab(t *testing.T) {
	alone(t)
	status, stdout, stderr := labctl(t, "-c", small, "image", "load", "none.tar")
	if status != exitFailed || stdout != "" || !strings.Contains(stderr, "run `labctl up`") {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	if status, _, stderr := labctl(t, "image", "load"); status != exitUsage || !strings.Contains(stderr, "image load needs FILE") {
		t.Errorf("no file: status %d, stderr %q", status, stderr)
	}
}

func TestImageLoadCompletesNodes(t *testing.T) {
	alone(t)
	for args, want := range map[string]string{"x.tar": "cp1\nw1\n", "x.tar cp1": "w1\n"} {
		call := append([]string{"__complete", "-c", small, "image", "load"}, append(strings.Fields(args), "")...)
		status, stdout, _ := labctl(t, call...)
		if got, _, _ := strings.Cut(stdout, ":"); status != 0 || got != want {
			t.Errorf("%s: status %d, got %q, want %q", args, status, got, want)
		}
	}
}

// pipe is standard input with that content; without an end if open.
func pipe(t *testing.T, content string, open bool) *app {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(); _ = w.Close() })
	go func() {
		_, _ = io.WriteString(w, content)
		if !open {
			_ = w.Close()
		}
	}()
	return &app{stdin: r}
}

// An image that is no file is asked of the programs that are there, one after another.
func TestArchiveOfAnImage(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	t.Setenv("TMPDIR", t.TempDir())
	program := func(name, script string) {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	a := &app{}
	if _, err := a.archive(t.Context(), "shop/web:dev"); err == nil || !strings.Contains(err.Error(), "shop/web:dev is no file, and no program of this computer has") {
		t.Errorf("no program: %v", err)
	}
	program("docker", `printf half; echo "No such image: $2" >&2; exit 1`)
	if _, err := a.archive(t.Context(), "shop/web:dev"); err == nil || !strings.Contains(err.Error(), "No such image: shop/web:dev") {
		t.Errorf("docker has none: %v", err)
	}
	program("podman", `test "$*" = "save shop/web:dev" && printf archive`)
	f, err := a.archive(t.Context(), "shop/web:dev")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	text := make([]byte, 20)
	if n, _ := f.ReadAt(text, 0); string(text[:n]) != "archive" {
		t.Errorf("read %q", text[:n])
	}
	if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	for _, file := range []string{"none.tar", "./none", "no such/file"} {
		if _, err := a.archive(t.Context(), file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// What comes by a pipe is read from its beginning by every node, and leaves no file, however labctl ends.
func TestArchiveFromStandardInput(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	f, err := pipe(t, strings.Repeat("layer", 50000), false).archive(t.Context(), "-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	got, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
	if err != nil || len(got) != 250000 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	if _, err := pipe(t, "", false).archive(t.Context(), "-"); err == nil || !strings.Contains(err.Error(), "the command before the pipe has failed") {
		t.Errorf("nothing came: %v", err)
	}
}

func TestArchiveIsInterrupted(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(errInterrupted) })
	if _, err := pipe(t, "some", true).archive(ctx, "-"); !errors.Is(err, errInterrupted) {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestArchiveThatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{filepath.Join(dir, "none.tar"): "no such file", dir: "is not a file"} {
		if _, err := new(app).archive(t.Context(), path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestPrintLoadedAndWarnings(t *testing.T) {
	var b bytes.Buffer
	printLoaded(&b, []provision.ImagesLoaded{{Node: "cp1", Images: []string{"a:1", "b:1"}}, {Node: "w1", Left: "its machine is off"}})
	if got, want := b.String(), "NODE  LOADED\ncp1   a:1, b:1\nw1    nothing: its machine is off\n"; got != want {
		t.Errorf("got %q", got)
	}
	b.Reset()
	printStatus(&b, health.Status{Healthy: true, Warnings: []string{"pod default/web on w1 cannot get the image nginx"}})
	if got := b.String(); !strings.HasSuffix(got, "\nhealthy\nwarning: pod default/web on w1 cannot get the image nginx\n") {
		t.Errorf("got %q", got)
	}
}
