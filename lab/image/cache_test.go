package image

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8slab/lab/event"
)

// home is a cache directory of the test's own.
func home(t *testing.T) cache {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir, err := CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return cache{dir: dir, events: event.NewStream()}
}

func put(text string) func(string, *event.Step) error {
	return func(dir string, _ *event.Step) error {
		return os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o644)
	}
}

func listDir(t *testing.T, dir string) []string {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var names []string
	for _, f := range found {
		if f.IsDir() {
			names = append(names, f.Name())
		}
	}
	return names
}

func TestCacheDir(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/x")
	if got, err := CacheDir(); err != nil || got != "/x/k8slab" {
		t.Errorf("got %s, %v", got, err)
	}
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	if got, err := CacheDir(); err == nil || !strings.Contains(err.Error(), "HOME") {
		t.Errorf("got %s, %v, want an error that says what to set", got, err)
	}
}

func TestGetBuildsOnce(t *testing.T) {
	c := home(t)
	var builds atomic.Int32
	build := func(dir string, step *event.Step) error {
		builds.Add(1)
		time.Sleep(50 * time.Millisecond) // so that the others meet it
		return put("whole")(dir, step)
	}
	var wg sync.WaitGroup
	paths := make([]string, 8)
	for i := range paths {
		wg.Go(func() {
			path, err := c.get(context.Background(), "thing", []string{"a"}, build)
			if err != nil {
				t.Error(err)
			}
			text, err := os.ReadFile(filepath.Join(path, "file"))
			if err != nil || string(text) != "whole" {
				t.Errorf("got %q, %v", text, err)
			}
			paths[i] = path
		})
	}
	wg.Wait()
	if builds.Load() != 1 || len(slices.Compact(paths)) != 1 {
		t.Errorf("%d builds, paths %q", builds.Load(), paths)
	}
	if got := listDir(t, c.dir); len(got) != 1 || got[0] != filepath.Base(paths[0]) {
		t.Errorf("the cache has %q", got)
	}
	info, err := os.Stat(paths[0])
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v: a container's root must be open to every user in it", info, err)
	}
	other, err := c.get(t.Context(), "thing", []string{"b"}, build)
	if err != nil || other == paths[0] || builds.Load() != 2 {
		t.Errorf("other inputs: %s, %v, %d builds", other, err, builds.Load())
	}
}

func TestGetFails(t *testing.T) {
	c := home(t)
	why := errors.New("no mirror answers")
	_, err := c.get(t.Context(), "thing", nil, func(dir string, step *event.Step) error {
		_ = put("half")(dir, step)
		return why
	})
	if !errors.Is(err, why) || !strings.Contains(err.Error(), "build thing") {
		t.Errorf("got %v", err)
	}
	if left := listDir(t, c.dir); len(left) != 0 {
		t.Errorf("left %q", left)
	}
	path, err := c.get(t.Context(), "thing", nil, put("whole"))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(path, "file")); string(text) != "whole" {
		t.Errorf("then %q, %v", text, err)
	}
}

func TestGetSweepsAnInterruptedBuild(t *testing.T) {
	c := home(t)
	mine, others := "thing-"+hash("a")+partial+"1", "thing-"+hash("b")+partial+"1"
	for _, name := range []string{mine, others} {
		if err := os.MkdirAll(filepath.Join(c.dir, name, "deep"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path, err := c.get(t.Context(), "thing", []string{"a"}, put("whole"))
	if err != nil {
		t.Fatal(err)
	}
	// Another thing's may be at work: only whoever builds that one may remove it.
	if got, want := listDir(t, c.dir), []string{filepath.Base(path), others}; !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What has arrived of a thing is for its next build, until somebody prunes.
func TestDownloadsOutliveABuild(t *testing.T) {
	c := home(t)
	mine, others := c.path("thing", []string{"a"})+downloads, c.path("thing", []string{"b"})+downloads
	for _, dir := range []string{mine, others} {
		write(t, filepath.Join(dir, "kubelet.part"), []byte("half"), 0o644)
	}
	if _, err := c.get(t.Context(), "thing", []string{"a"}, put("whole")); err != nil {
		t.Fatal(err)
	}
	if !exists(mine) || !exists(others) {
		t.Error("the build removed downloads")
	}
	if got, err := List(); err != nil || len(got) != 1 {
		t.Errorf("listed %v, %v: downloads are nothing that is built", got, err)
	}
	err := c.locked(t.Context(), strings.TrimSuffix(others, downloads), nil, func() error {
		_, err := Prune(time.Now().Add(-time.Hour), func(string) bool { return false })
		return err
	})
	if err != nil || exists(mine) || !exists(others) {
		t.Errorf("%v; of an interrupted download is left: %v, of one that is at work: %v", err, exists(mine), exists(others))
	}
}

func TestGetGivesUpWaiting(t *testing.T) {
	c := home(t)
	begun, end := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		_, err := c.get(context.Background(), "thing", nil, func(dir string, step *event.Step) error {
			close(begun)
			<-end
			return put("whole")(dir, step)
		})
		done <- err
	}()
	select {
	case <-begun:
	case err := <-done:
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.get(ctx, "thing", nil, put("second")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	close(end)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestGetNotesItsUse(t *testing.T) {
	c := home(t)
	path, err := c.get(t.Context(), "thing", nil, put("x"))
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-100 * time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	if _, err := c.get(t.Context(), "thing", nil, put("y")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || time.Since(info.ModTime()) > time.Hour {
		t.Errorf("last used %v, %v", info, err)
	}
}

func TestListAndPrune(t *testing.T) {
	c := home(t)
	if got, err := List(); err != nil || len(got) != 0 {
		t.Errorf("no cache yet: %v, %v", got, err)
	}
	now := time.Now()
	for name, age := range map[string]time.Duration{"new": time.Hour, "old": 200 * time.Hour, "booted": 300 * time.Hour, "old-1" + partial + "9": 400 * time.Hour} {
		dir := filepath.Join(c.dir, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "file"), make([]byte, 1<<16), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+lockSuffix, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	names := func(entries []Entry) (names []string) {
		for _, e := range entries {
			names = append(names, e.Name)
			if e.Size < 1<<16 {
				t.Errorf("%s takes %d bytes", e.Name, e.Size)
			}
		}
		return names
	}
	got, err := List()
	if want := []string{"new", "old", "booted"}; err != nil || !slices.Equal(names(got), want) {
		t.Errorf("listed %q, %v, want %q", names(got), err, want)
	}
	removed, err := Prune(now.Add(-100*time.Hour), func(path string) bool { return path == filepath.Join(c.dir, "booted") })
	if want := []string{"old"}; err != nil || !slices.Equal(names(removed), want) {
		t.Errorf("removed %q, %v, want %q", names(removed), err, want)
	}
	if got, err := List(); err != nil || !slices.Equal(names(got), []string{"new", "booted"}) {
		t.Errorf("left %q, %v", names(got), err)
	}
	if exists(filepath.Join(c.dir, "old"+lockSuffix)) || !exists(filepath.Join(c.dir, "new"+lockSuffix)) {
		t.Error("locks are left for what is gone, or gone for what is left")
	}
	// What interrupted builds left is as unused as anything.
	if exists(filepath.Join(c.dir, "old-1"+partial+"9")) {
		t.Error("an interrupted build's leftovers stay for ever")
	}
}

func TestBuildNeedsLabnode(t *testing.T) {
	b := newBuilder(home(t))
	_, err := b.assemble(t.Context(), Spec{KubernetesVersion: "v1.36.3", Labnode: filepath.Join(t.TempDir(), "none")})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "labnode, a part of the image") {
		t.Errorf("got %v, want an error that names what is missing", err)
	}
}

func TestNoRoom(t *testing.T) {
	dir := t.TempDir()
	if err := room(dir, 1); err != nil {
		t.Errorf("a byte: %v", err)
	}
	err := room(dir, 1<<62)
	if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "labctl image prune") {
		t.Errorf("got %v, want an error that names the directory and what frees space", err)
	}
}
