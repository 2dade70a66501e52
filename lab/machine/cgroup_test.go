package machine

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDelegate(t *testing.T) {
	root := t.TempDir()
	if err := delegate(filepath.Join(root, "none"), []string{"cpu"}); err == nil {
		t.Error("handed controllers on to nobody")
	}
	if err := delegate(root, []string{"cpu", "pids"}); err != nil {
		t.Fatal(err)
	}
	// A kernel's file has each one that was written; a plain one has the last.
	if got, err := os.ReadFile(filepath.Join(root, "cgroup.subtree_control")); err != nil || string(got) != "+pids" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestThaw(t *testing.T) {
	root := t.TempDir()
	files := map[string]string{
		"lab.partition/lxc-7-n/freezer.state":       "THAWED\n",
		"lab.partition/lxc-7-n/a/freezer.state":     "FROZEN\n",
		"lab.partition/lxc-7-n/a/b/freezer.state":   "FREEZING\n",
		"lab.partition/lxc-77-other/freezer.state":  "FROZEN\n",
		"lab.partition/lxc-7-n/c/cgroup.procs":      "",
		"other.partition/lxc-8-other/freezer.state": "FROZEN\n",
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := thaw(filepath.Join(root, "*.partition", "lxc-7-*")); err != nil {
		t.Fatal(err)
	}
	files["lab.partition/lxc-7-n/a/freezer.state"] = "THAWED"
	files["lab.partition/lxc-7-n/a/b/freezer.state"] = "THAWED"
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
}
