package scenarios

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// here is a driver whose node is this computer. What the node keeps is in store.
type here struct{ store string }

func (h here) Run(ctx context.Context, _ string, argv ...string) (string, error) {
	for i, a := range argv {
		argv[i] = strings.ReplaceAll(a, damageStore, h.store)
	}
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		err = errors.Join(err, errors.New(string(out)))
	}
	return string(out), err
}

func (here) Labctl(context.Context, ...string) (string, error) { return "", errors.New("no lab") }

// Each way changes the file, also while it is open or runs, and undoing it brings the same bytes and mode back.
func TestFilesAreDamagedAndUndone(t *testing.T) {
	const was = "#!/bin/sh\necho what was here before\n"
	for _, how := range fileGroups[0].ways {
		for _, mended := range []bool{false, true} {
			dir := t.TempDir()
			target := Target{Driver: here{filepath.Join(dir, "store")}, Node: "here"}
			file := filepath.Join(dir, "it's $(a) file")
			if err := errors.Join(os.WriteFile(file, []byte(was), 0o700), os.Chmod(file, 0o753)); err != nil { // a mode that no umask leaves
				t.Fatal(err)
			}
			before := stateOf(t, file)
			listed, err := listFiles(t.Context(), target, dir, how)
			if err != nil || !slices.Equal(listed, []string{file}) {
				t.Errorf("listed %q, %v", listed, err)
			}
			d := Damage{Kind: "file", How: how, Node: "here", What: file}
			if err := d.make(t.Context(), target, func(Damage) error { return nil }); err != nil {
				t.Errorf("%s: %v", how, err)
			}
			if stateOf(t, file) == before {
				t.Errorf("%s changed nothing", how)
			}
			want := before
			if mended { // by somebody else: that must stay
				if err := errors.Join(os.RemoveAll(file), os.WriteFile(file, []byte("mended"), 0o600)); err != nil {
					t.Fatal(err)
				}
				want = stateOf(t, file)
			}
			for range 2 { // it is safe at any time
				if err := d.undo(t.Context(), target, !mended); err != nil {
					t.Errorf("undo %s: %v", how, err)
				}
			}
			if got := stateOf(t, file); got != want {
				t.Errorf("%s, mended %v: %q, want %q", how, mended, got, want)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
				t.Errorf("%s leaves %v, %v", how, left, err)
			}
		}
	}
}

// Harmless damage is undone without force, and only where nobody changed the file since.
func TestFilesThatStayDamagedAreUndoneGently(t *testing.T) {
	dir := t.TempDir()
	target := Target{Driver: here{filepath.Join(dir, "store")}, Node: "here"}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := stateOf(t, file)
	d := Damage{Kind: "file", How: "delete", Node: "here", What: file}
	err := errors.Join(d.make(t.Context(), target, func(Damage) error { return nil }), d.undo(t.Context(), target, false))
	if got := stateOf(t, file); err != nil || got != before {
		t.Errorf("%q, %v", got, err)
	}
}

// Any program of a node may be the damaged one, also those that the damage is made and undone with.
func TestProgramsAreDamagedAndUndone(t *testing.T) {
	programs := t.TempDir()
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\nPATH=/usr/bin:/bin exec "+name+` "$@"`+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	all := []string{"cat", "cp", "dd", "mkdir", "mv", "rm", "sha256sum", "stat", "sync", "systemctl", "truncate"}
	for _, name := range all {
		write(name)
	}
	if err := os.Symlink("/bin/sh", filepath.Join(programs, "sh")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", programs) // nothing else stands in for a damaged one
	for _, name := range all {
		target := Target{Driver: here{filepath.Join(t.TempDir(), "store")}, Node: "here"}
		file := filepath.Join(programs, name)
		before := stateOf(t, file)
		d := Damage{Kind: "file", How: "replace-text", Node: "here", What: file}
		err := d.make(t.Context(), target, func(Damage) error { return nil })
		if stateOf(t, file) == before || err != nil {
			t.Errorf("%s is as before, %v", name, err)
		}
		if err := d.undo(t.Context(), target, true); err != nil || stateOf(t, file) != before {
			t.Errorf("%s is %s, %v", name, stateOf(t, file), err)
		}
		write(name)
	}
}

func stateOf(t *testing.T, file string) string {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		return "absent"
	}
	data, _ := os.ReadFile(file)
	return info.Mode().String() + " " + string(data)
}
