package event

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

type failingWriter struct {
	err   error
	calls int
}

func (w *failingWriter) Write([]byte) (int, error) { w.calls++; return 0, w.err }

func TestDeadWriter(t *testing.T) {
	sinks := map[string]func(*failingWriter) Sink{
		"plain":    func(w *failingWriter) Sink { return Plain(w) },
		"json":     func(w *failingWriter) Sink { return JSON(w) },
		"terminal": func(w *failingWriter) Sink { return Terminal(w, nil) },
		"summary":  func(w *failingWriter) Sink { return Summary(w) },
	}
	for name, sink := range sinks {
		for _, cause := range []error{syscall.EPIPE, syscall.ENOSPC} {
			t.Run(name+" "+cause.Error(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := &failingWriter{err: &fs.PathError{Op: "write", Path: "|1", Err: cause}}
					rec := &recorder{}
					s := NewStream(sink(w), rec)
					st := s.Start("cp1", "kubeadm init", time.Minute)
					time.Sleep(25 * time.Second)
					_ = st.End(nil)
					err := s.Close()
					if lost := cause != syscall.EPIPE; lost != errors.Is(err, cause) {
						t.Errorf("Close returned %v", err)
					}
					if w.calls != 1 {
						t.Errorf("%d writes to a dead writer", w.calls)
					}
					if len(rec.events) != 4 {
						t.Errorf("the next sink got %d events, want 4", len(rec.events))
					}
				})
			})
		}
	}
}

// writeToBrokenStdout is what the test below runs as a process of its own.
func writeToBrokenStdout() int {
	time.Sleep(50 * time.Millisecond)
	s := NewStream(Plain(os.Stdout))
	for range 3 {
		_ = s.Start("cp1", "kubeadm init", 0).End(nil)
	}
	if s.Close() != nil {
		return 3
	}
	return 42
}

func TestBrokenStandardOutputDoesNotEndTheRun(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "EVENT_TEST_BROKEN_STDOUT=1")
	cmd.Stdout = w
	_ = cmd.Run()
	if cmd.ProcessState.ExitCode() != 42 {
		t.Errorf("the process ended with %v", cmd.ProcessState)
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "runs", "lab1", "run.jsonl")
	for range 2 {
		sink, err := File(path)
		if err != nil {
			t.Fatal(err)
		}
		s := NewStream(sink)
		_ = s.Start("cp1", "kubeadm init", 0).End(errors.New("bad token " + token))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), "\n"); n != 4 || strings.Contains(string(data), secret) {
		t.Errorf("%d lines:\n%s", n, data)
	}
	for name, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700, filepath.Join(dir, "runs"): 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func TestFileMakesAnOpenFilePrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	sink, err := File(path)
	if err != nil {
		t.Fatal(err)
	}
	defer NewStream(sink).Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestFileRefuses(t *testing.T) {
	tests := map[string]func(path string) error{
		"symlink": func(path string) error { return os.Symlink(filepath.Join(filepath.Dir(path), "target"), path) },
		"symlink to a file": func(path string) error {
			return errors.Join(os.WriteFile(path+".x", nil, 0o600), os.Symlink(path+".x", path))
		},
		"fifo":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"device":    func(path string) error { return nil },
	}
	for name, plant := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "run.jsonl")
			if name == "device" {
				path = os.DevNull
			}
			if err := plant(path); err != nil {
				t.Fatal(err)
			}
			if sink, err := File(path); err == nil {
				NewStream(sink).Close()
				t.Error("accepted")
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), "target")); err == nil {
				t.Error("the link's target was created")
			}
		})
	}
}
