package join

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMoveAsideKeepsEarlierOnes(t *testing.T) {
	f := newFakeMachine(t)
	for _, text := range []string{"one", "two", "three"} {
		f.write("/etc/x", text)
		if err := f.moveAside("/etc/x"); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{"/etc/x" + saved: "one", "/etc/x" + saved + "-1": "two", "/etc/x" + saved + "-2": "three"} {
		if got, _ := f.Read(path); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
}

func TestReplaceKeepsTheModeAndTheFirstContent(t *testing.T) {
	f := newFakeMachine(t)
	f.write("/etc/x", "one")
	if err := os.Chmod(f.Path("/etc/x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"two", "three"} {
		if err := f.replace("/etc/x", text); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{"/etc/x": "three", "/etc/x" + saved: "one"} {
		info, err := os.Stat(f.Path(path))
		if got, _ := f.Read(path); err != nil || got != want || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %q %v %v", path, got, info.Mode(), err)
		}
	}
	if left, _ := filepath.Glob(f.Path("/etc/.k8slab-*")); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}
