package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A lab has a name as soon as it has an identity, and can be described by itself when its machines were made.
func TestNames(t *testing.T) {
	l := newLab(t, small)
	if names, err := Names(); err != nil || len(names) > 0 {
		t.Errorf("without a lab: %q, %v", names, err)
	}
	if _, err := MadeWith("small"); err == nil || !strings.Contains(err.Error(), `no lab "small"; there is none`) {
		t.Errorf("without a lab: %v", err)
	}
	for _, name := range []string{"small", "beta", "alpha"} {
		d, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.ID(); err != nil {
			t.Fatal(err)
		}
	}
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{".logs/id", "rest"} { // neither is a lab
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := Names(); err != nil || !slices.Equal(names, []string{"alpha", "beta", "small"}) {
		t.Errorf("got %q, %v", names, err)
	}
	if _, err := MadeWith("gamma"); err == nil || !strings.Contains(err.Error(), `no lab "gamma"; there are: alpha, beta, small`) {
		t.Errorf("a stranger: %v", err)
	}
	if _, err := MadeWith("small"); err == nil || !strings.Contains(err.Error(), "only its cluster.yaml describes it") {
		t.Errorf("before its machines are made: %v", err)
	}
	if l.Settled() {
		t.Error("settled before its machines are made")
	}
	if err := l.Settle(); err != nil {
		t.Fatal(err)
	}
	if path, err := MadeWith("small"); err != nil || path != l.Path(MadeFile) || !l.Settled() {
		t.Errorf("got %s, %v", path, err)
	}
}

// What is wrong with the place of all labs is said by everything that looks there.
func TestNoPlaceForLabs(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "")
	_, names := Names()
	_, with := MadeWith("x")
	_, open := Open("x")
	_, images := ImagesInUse()
	_, log := RunLog("x", "up")
	_, locked := Locked("x")
	_, lock := Lock("x", "up")
	for i, err := range []error{names, with, open, images, log, locked, lock} {
		if err == nil || !strings.Contains(err.Error(), "set HOME or XDG_STATE_HOME") {
			t.Errorf("%d: got %v", i, err)
		}
	}
}

// A lab of another user is not taken for one that is not there.
func TestUnreadable(t *testing.T) {
	l := newLab(t, small)
	for name, read := range map[string]func() error{
		MadeFile:   func() error { _, err := l.Made(); return err },
		membersDir: func() error { _, err := l.Admitted(); return err },
	} {
		if err := os.MkdirAll(l.Path(), 0o700); err != nil {
			t.Fatal(err)
		}
		// A directory in the place of a file, and the other way around, cannot be read by root either.
		if err := errors.Join(os.RemoveAll(l.Path(name)), map[bool]func() error{
			true:  func() error { return os.Mkdir(l.Path(name), 0o700) },
			false: func() error { return os.WriteFile(l.Path(name), nil, 0o600) },
		}[name == MadeFile]()); err != nil {
			t.Fatal(err)
		}
		err := read()
		if err == nil || !strings.HasPrefix(err.Error(), "the lab's state in "+l.Path()+" cannot be read: ") || !strings.Contains(err.Error(), "set XDG_STATE_HOME") {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Count(err.Error(), l.Path()) != 1 {
			t.Errorf("%s: its place is told twice: %v", name, err)
		}
		if _, err := Read(l.Described); err == nil {
			t.Errorf("%s: read all the same", name)
		}
		if err := os.RemoveAll(l.Path(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unreadable("/x", fs.ErrPermission); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v", err)
	}
}

// What was made and cannot be read any more is an error with its place, for all that reads it.
func TestDamagedMade(t *testing.T) {
	l := madeLab(t)
	if err := l.Write(MadeFile, []byte("nodes: [")); err != nil {
		t.Fatal(err)
	}
	_, made := l.Made()
	_, read := Read(l.Described)
	for _, err := range []error{made, read, l.Settle(), l.Forget("w1")} {
		if err == nil || !strings.Contains(err.Error(), l.Path(MadeFile)) {
			t.Errorf("got %v", err)
		}
	}
}

// Files of the lab that are there only when its machines are.
func TestFilesOfALabThatIsNotUp(t *testing.T) {
	l := newLab(t, small)
	if err := l.CheckMade(); !errors.Is(err, ErrNotUp) {
		t.Errorf("nothing was made: %v", err)
	}
	for name, path := range map[string]func() (string, error){"kubeconfig": l.Kubeconfig, "image": l.Kubectl} {
		if _, err := path(); !errors.Is(err, ErrNotUp) {
			t.Errorf("%s: %v", name, err)
		}
		if err := l.Write(name, []byte("/cache/node-1")); err != nil {
			t.Fatal(err)
		}
	}
	if path, err := l.Kubeconfig(); err != nil || path != l.Path("kubeconfig") {
		t.Errorf("got %s, %v", path, err)
	}
	if path, err := l.Kubectl(); err != nil || path != "/cache/node-1/root/usr/bin/kubectl" {
		t.Errorf("got %s, %v", path, err)
	}
	if _, err := l.ID(); err != nil || l.CheckMade() != nil {
		t.Errorf("with an identity: %v, %v", err, l.CheckMade())
	}
	if l.OnboardingDir() != l.Path("onboard") {
		t.Error(l.OnboardingDir())
	}
}
