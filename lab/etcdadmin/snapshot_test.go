package etcdadmin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8slab/lab/etcd"
	"k8slab/lab/labtest"
)

// fakeStore sends its data, and then perhaps fails.
type fakeStore struct {
	data []byte
	err  error
}

func (f fakeStore) Snapshot(_ context.Context, w io.Writer) (etcd.Snapshot, error) {
	n, err := w.Write(f.data)
	return etcd.Snapshot{Endpoint: "https://10.30.0.11:2379", Size: int64(n), SHA256: "abc"}, errors.Join(err, f.err)
}

func TestSaveSnapshot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.db")
	got, err := SaveSnapshot(t.Context(), fakeStore{data: []byte("data")}, file)
	if want := (Snapshot{File: file, Size: 4, Checksum: "sha256:abc", Endpoint: "https://10.30.0.11:2379"}); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	// One that breaks off leaves what was there.
	if _, err := SaveSnapshot(t.Context(), fakeStore{data: []byte("half"), err: errors.New("broke off")}, file); err == nil {
		t.Error("no error")
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "data" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); len(left) != 1 {
		t.Errorf("left %q", left)
	}
	if _, err := SaveSnapshot(t.Context(), fakeStore{}, filepath.Join(file, "below")); err == nil {
		t.Error("saved below a file")
	}
}

func TestKeepSnapshot(t *testing.T) {
	s := labtest.Session(t, labtest.Small)
	dir := s.Path("snapshots")
	for i := range keptSnapshots + 2 {
		if err := s.Write(fmt.Sprintf("snapshots/2001010%dT000000-old.db", i+1), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := KeepSnapshot(t.Context(), s, fakeStore{data: []byte("new")}, "before-removing-cp2"); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != keptSnapshots || !strings.HasSuffix(left[len(left)-1], "-before-removing-cp2.db") {
		t.Errorf("left %q, %v", left, err)
	}
	why := errors.New("no voter runs")
	if err := KeepSnapshot(t.Context(), s, fakeStore{err: why}, "x"); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

func TestCheckedSnapshot(t *testing.T) {
	data := bytes.Repeat([]byte("x"), 512)
	sum := sha256.Sum256(data)
	good := append(data, sum[:]...)
	file := filepath.Join(t.TempDir(), "a.db")
	for name, content := range map[string][]byte{"good": good, "cut off": good[:540], "damaged": append([]byte("y"), good[1:]...)} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := CheckedSnapshot(file)
		if name != "good" {
			if err == nil || !strings.HasPrefix(err.Error(), file+": ") {
				t.Errorf("%s: error %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, good) {
			t.Errorf("%d bytes are left to read, %v", len(got), err)
		}
		f.Close()
	}
	if _, err := CheckedSnapshot(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}
