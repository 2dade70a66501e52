package onboard

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOpenStore(t *testing.T) {
	dir := t.TempDir()
	for _, node := range []string{"", "..", ".", "a/b", "W2", "-w2", "w2\n", strings.Repeat("w", 254)} {
		bad := target
		bad.Node, bad.Role, bad.ClusterID = node, "", "../../x"
		_, err := OpenStore(dir, bad)
		contains(t, err, "not the name of a Node", "role", `cluster_id "../../x" is not a UUID`) // every problem at once
	}
	good := target
	good.Node, good.Role = "ip-10-0-0-7.eu-west-1.compute.internal", "control-plane"
	if _, err := OpenStore(dir, good); err != nil {
		t.Error(err)
	}
}

// All that is kept is the user's alone, and what killed writes left goes away.
func TestFilesArePrivate(t *testing.T) {
	dir := t.TempDir()
	f := newFake(dir)
	must(t, os.MkdirAll(f.Store.dir, 0o755)) // made by a careless hand
	must(t, os.Chmod(f.Store.dir, 0o755))
	must(t, os.WriteFile(f.Store.path(".new-"+"123"), []byte("{"), 0o600))
	must(t, f.Run(t.Context(), Options{}))
	must(t, f.Rollback(t.Context()))
	f.runners[PostValidation].run = broken
	if err := f.Run(t.Context(), Options{}); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	var names []string
	err := filepath.WalkDir(f.Store.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; err == nil && info.Mode().Perm() != want {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		names = append(names, strings.SplitAfter(d.Name(), "before-rollback-")[0])
		return err
	})
	must(t, err)
	if got := strings.Join(names, " "); got != "w2 archive 000001-completed.json 000002-rolled_back.json before-rollback- lock state.json" {
		t.Errorf("got %s", got)
	}
}

func TestForeignDirectory(t *testing.T) {
	f := newFake(t.TempDir())
	must(t, os.MkdirAll(filepath.Dir(f.Store.dir), 0o700))
	must(t, os.MkdirAll(filepath.Join(t.TempDir(), "elsewhere"), 0o700))
	must(t, os.Symlink(t.TempDir(), f.Store.dir))
	contains(t, f.Run(t.Context(), Options{}), "is not a directory of this user: remove it")
	if f.world.done() != "" {
		t.Errorf("done: %s", f.world.done())
	}
}

// An onboarding that ended between its last write and its archiving is finished all the same.
func TestArchivingWasInterrupted(t *testing.T) {
	f := newFake(t.TempDir())
	must(t, f.Run(t.Context(), Options{}))
	must(t, os.Rename(f.Store.path(archiveDir, "000001-completed.json"), f.Store.path(stateFile)))
	if v := view(t, f); v.Condition != Onboarded {
		t.Errorf("got %s", v.Condition)
	}
	contains(t, f.Run(t.Context(), Options{}), "w2 was onboarded at ")
	if _, err := os.Stat(f.Store.path(archiveDir, "000001-completed.json")); err != nil {
		t.Error(err)
	}
	must(t, f.Rollback(t.Context()))
}

// The archive of a lab that is gone is history, and none of the new lab's business. A damaged one must not be passed over.
func TestHistory(t *testing.T) {
	dir := t.TempDir()
	f := newFake(dir)
	must(t, f.Run(t.Context(), Options{}))
	anew := target
	anew.ClusterID = anotherID
	f = newFakeOf(dir, anew)
	if v := view(t, f); v.Condition != Never {
		t.Errorf("got %s", v.Condition)
	}
	if _, err := f.Undoable(); !errors.Is(err, ErrNothing) {
		t.Errorf("got %v", err)
	}
	must(t, f.Run(t.Context(), Options{}))
	damaged := f.Store.path(archiveDir, "000003-completed.json")
	must(t, os.WriteFile(damaged, []byte("{"), 0o600))
	must(t, os.WriteFile(f.Store.path(archiveDir, "notes.txt"), nil, 0o600))
	all, err := f.Store.History()
	must(t, err)
	if len(all) != 3 || all[0].State != nil || !strings.Contains(all[0].Err, "it is of cluster small (4f0c") ||
		all[1].State == nil || all[1].State.ClusterID != anotherID || all[2].State != nil || !strings.Contains(all[2].Err, "torn") {
		t.Errorf("got %+v", all)
	}
	err = f.Rollback(t.Context())
	if bad, ok := errors.AsType[*RefusedError](err); !ok || bad.Path != damaged {
		t.Errorf("got %v", err)
	}
}

// Two onboardings of a node exclude each other; another node's goes on, and looks get through.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	f := newFake(dir)
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	f.runners[NetworkValidation].run = func(ctx context.Context, _ *Journal) error {
		_, _ = w.WriteString("at work\n")
		<-ctx.Done()
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.Run(ctx, Options{}) }()
	if _, err := bufio.NewReader(r).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	other := newFake(dir)
	err = other.Rollback(t.Context())
	if _, ok := errors.AsType[*LockedError](err); !ok {
		t.Errorf("got an error of type %T", err)
	}
	contains(t, err, "the onboarding of w2 is in use by labctl onboard (process ")
	if v := view(t, other); v.Condition != Working || !strings.Contains(v.Holder, "labctl onboard (process ") || phasesOf(v.State) != "++++>...." {
		t.Errorf("got %s by %q, %s", v.Condition, v.Holder, phasesOf(v.State))
	}
	cancel()
	<-ended
	if v := view(t, other); v.Condition != Interrupted || v.Holder != "" {
		t.Errorf("got %s", v.Condition)
	}
	must(t, other.Run(t.Context(), Options{Resume: true}))
}
