package image

import (
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"k8slab/lab/event"
)

func write(t *testing.T, path string, data []byte, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func step(t *testing.T) *event.Step {
	t.Helper()
	s := event.NewStream().Start("", "test", 0)
	t.Cleanup(func() { _ = s.End(nil) })
	return s
}

// zip compresses a file in its place and puts .gz after its name.
func zip(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path + ".gz")
	if err != nil {
		t.Fatal(err)
	}
	w := gzip.NewWriter(f)
	_, err = w.Write([]byte(read(t, path)))
	if err := errors.Join(err, w.Close(), f.Close(), os.Remove(path)); err != nil {
		t.Fatal(err)
	}
}
