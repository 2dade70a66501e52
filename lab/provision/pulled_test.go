package provision

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/labtest"
	"k8slab/lab/machine"
	"k8slab/lab/node"
	"k8slab/lab/session"
)

// diskOfCP1 is a first control plane whose disk is a directory of this computer.
type diskOfCP1 struct {
	oneMachine
	root    string
	without []string // of the last ReceiveNew
	err     error
}

func (d *diskOfCP1) at(file string) string { return filepath.Join(d.root, file) }

func (d *diskOfCP1) Read(_ context.Context, argv ...string) (string, error) {
	if _, err := os.Stat(d.at(argv[len(argv)-1])); argv[0] == "test" && err != nil {
		return "", &node.ExitError{Node: "cp1", Argv: argv, Status: 1}
	}
	return "", d.err
}

func (d *diskOfCP1) Run(_ context.Context, cmd node.Command) error {
	switch argv := cmd.Argv; argv[0] {
	case "rm":
		return os.RemoveAll(d.at(argv[2]))
	case "mkdir":
		return os.MkdirAll(d.at(argv[2]), 0o755)
	case "mv":
		return os.Rename(d.at(argv[2]), d.at(argv[3]))
	}
	return errors.New("unexpected: " + strings.Join(cmd.Argv, " "))
}

func (d *diskOfCP1) Send(_ context.Context, src, dst string) error {
	return errors.Join(os.CopyFS(d.at(dst), os.DirFS(src)), d.err)
}

func (d *diskOfCP1) ReceiveNew(_ context.Context, src, dst string, without []string) error {
	d.without = without
	for _, name := range without {
		if err := os.Remove(d.at(filepath.Join(src, name))); err != nil {
			return err
		}
	}
	return errors.Join(os.CopyFS(filepath.Join(dst, filepath.Base(src)), os.DirFS(d.at(src))), d.err)
}

// in is a lab whose registry.example:5000 has a cache.
func (d *diskOfCP1) in(t *testing.T) *session.Session {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	s := labtest.Session(t, labtest.Small)
	s.Cluster.Registries = []config.Registry{{Name: "docker.io"}, {Name: "registry.example:5000", Cache: true}}
	d.root, d.state = t.TempDir(), machine.Running
	s.Machines, s.Nodes["cp1"] = d, d
	return s
}

func (d *diskOfCP1) has(t *testing.T, files ...string) {
	t.Helper()
	for _, f := range files {
		file := d.at(filepath.Join(pulledDir, "registry.example_5000", f))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(f), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// What a cache pulled goes to this computer, each blob once, and from there to the next lab, whole or not at all.
func TestPulledIsKeptAndGiven(t *testing.T) {
	d := &diskOfCP1{}
	s := d.in(t)
	keepPulled(t.Context(), s) // nothing was pulled
	d.has(t, blobDir+"/sha256/aa/1", "docker/registry/v2/repositories/web/link")
	keepPulled(t.Context(), s)
	if d.without != nil {
		t.Errorf("left out %q", d.without)
	}

	next := &diskOfCP1{root: t.TempDir(), err: errors.New("the connection broke")}
	next.state, s.Nodes["cp1"] = machine.Running, next
	step := s.Events.Start("cp1", "add-ons", 0)
	if err := GivePulled(t.Context(), s, step); err == nil || !strings.Contains(err.Error(), "the connection broke") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(next.at(filepath.Join(pulledDir, "registry.example_5000"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what did not arrive whole is there: %v", err)
	}
	next.err = nil
	if err := GivePulled(t.Context(), s, step); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(next.at(filepath.Join(pulledDir, "registry.example_5000", blobDir, "sha256/aa/1")))
	if err != nil || string(text) != blobDir+"/sha256/aa/1" {
		t.Errorf("%q, %v", text, err)
	}

	s.Machines = next
	next.has(t, blobDir+"/sha256/bb/2")
	if err := os.Remove(next.at(filepath.Join(pulledDir, "registry.example_5000", "docker/registry/v2/repositories/web/link"))); err != nil {
		t.Fatal(err)
	}
	keepPulled(t.Context(), s)
	if want := []string{blobDir + "/sha256/aa/1"}; !slices.Equal(next.without, want) {
		t.Errorf("left out %q", next.without)
	}
	if _, err := os.Stat(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "k8slab/pulled/registry.example_5000", blobDir, "sha256/bb/2")); err != nil {
		t.Error(err)
	}
}

// A machine that is off, or silent, does not keep a lab from going.
func TestPulledIsNotKept(t *testing.T) {
	for name, spoil := range map[string]func(*diskOfCP1){
		"off":    func(d *diskOfCP1) { d.state = machine.Off },
		"silent": func(d *diskOfCP1) { d.err = errors.New("no answer") },
	} {
		t.Run(name, func(t *testing.T) {
			d := &diskOfCP1{}
			s := d.in(t)
			d.has(t, blobDir+"/sha256/aa/1")
			spoil(d)
			keepPulled(t.Context(), s)
			if _, err := os.Stat(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "k8slab/pulled")); err == nil {
				t.Error("something was kept")
			}
		})
	}
}
