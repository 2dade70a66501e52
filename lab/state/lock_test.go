package state

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestLock(t *testing.T) {
	ownState(t)
	release, err := Lock("small", "labctl up")
	if err != nil {
		t.Fatal(err)
	}
	var refused *LockedError
	if _, err := Lock("small", "labctl down"); !errors.As(err, &refused) {
		t.Fatalf("got %v, want a LockedError", err)
	}
	if refused.Lab != "small" || !strings.HasPrefix(refused.Holder, "labctl up (process ") {
		t.Errorf("got %+v, want the holder", *refused)
	}
	for name, want := range map[string]bool{"small": true, "other": false} {
		if got, err := Locked(name); err != nil || got != want {
			t.Errorf("%s is locked: %v, %v", name, got, err)
		}
	}
	other, err := Lock("other", "labctl up")
	if err != nil {
		t.Fatalf("another lab: %v", err)
	}
	other()
	release()
	release, err = Lock("small", "labctl down")
	if err != nil {
		t.Fatalf("after its release: %v", err)
	}
	release()
	// A look must not keep the lab from anybody.
	if got, err := Locked("small"); err != nil || got {
		t.Errorf("free, and locked: %v, %v", got, err)
	}
	if release, err = Lock("small", "labctl up"); err != nil {
		t.Fatalf("after a look: %v", err)
	}
	release()
}

// The faults of a lab have a lock of their own: what makes them calls other labctls, which take the lab.
func TestLockFaults(t *testing.T) {
	ownState(t)
	release, err := LockFaults("small", "labctl soak")
	if err != nil {
		t.Fatal(err)
	}
	var held *LockedError
	if _, err := LockFaults("small", "labctl fault run"); !errors.As(err, &held) || !strings.Contains(err.Error(), "lab small is in use by labctl soak (process ") {
		t.Errorf("got %v, want a LockedError", err)
	}
	whole, err := Lock("small", "labctl repair")
	if err != nil {
		t.Fatal(err)
	}
	whole()
	release()
}

// The lock of a process that is killed is free at once.
func TestLockOfAnotherProcess(t *testing.T) {
	ownState(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "K8SLAB_TEST_LOCK=small")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "locked\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	var locked *LockedError
	if _, err := Lock("small", "labctl up"); !errors.As(err, &locked) || !strings.Contains(locked.Error(), "lab small is in use by labctl up (process ") {
		t.Fatalf("got %v, want a LockedError", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	release, err := Lock("small", "labctl up")
	if err != nil {
		t.Fatalf("after its end: %v", err)
	}
	release()
}

// What frees a full disk takes the lock first.
func TestLockOnAFullDisk(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	path, err := lockPath("small")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Symlink("/dev/full", path)); err != nil {
		t.Fatal(err)
	}
	release, err := Lock("small", "labctl down")
	if err != nil {
		t.Fatal(err)
	}
	release()
}
