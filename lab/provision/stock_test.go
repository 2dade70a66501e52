package provision

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8slab/lab/event"
	"k8slab/lab/host"
	"k8slab/lab/image"
	"k8slab/lab/labtest"
	"k8slab/lab/node"
)

// stockMachine is a machine with a stock image: a directory for its root, and what its commands answer.
type stockMachine struct {
	t      *testing.T
	root   string
	fail   map[string]error // by program
	calls  []string
	script []string // arguments of the install script, when it ran last
}

func (m *stockMachine) Run(ctx context.Context, cmd node.Command) error {
	argv := cmd.Argv
	if argv[0] == "flock" {
		argv = argv[2:]
	}
	program := filepath.Base(argv[0])
	m.calls = append(m.calls, program)
	if err := m.fail[program]; err != nil {
		return err
	}
	switch program {
	case "test":
		if _, err := os.Stat(filepath.Join(m.root, argv[2])); err != nil {
			return &node.ExitError{Node: "cp1", Argv: cmd.Argv, Status: 1}
		}
	case "cloud-init":
	case "tar":
		argv = slices.Clone(argv)
		argv[slices.Index(argv, "/")] = m.root
		tar := exec.CommandContext(ctx, argv[0], argv[1:]...)
		tar.Stdin = cmd.Stdin
		if out, err := tar.CombinedOutput(); err != nil {
			return errors.Join(err, errors.New(string(out)))
		}
	case "install":
		if _, err := os.Stat(filepath.Join(m.root, argv[0])); err != nil {
			m.t.Error("runs what was not unpacked")
		}
		m.script = argv[1:]
		_, err := cmd.Stdout.Write([]byte("Unpacking a\nUnpack"))
		_, more := cmd.Stdout.Write([]byte("ing b\n"))
		return errors.Join(err, more, os.WriteFile(filepath.Join(m.root, image.BundleMark), nil, 0o644))
	default:
		m.t.Errorf("unexpected command %q", cmd.Argv)
	}
	return nil
}

// stockBundle is an archive with the install script and a file below a directory that the image has as a link.
func stockBundle(t *testing.T) image.Bundle {
	t.Helper()
	tree, archive := t.TempDir(), filepath.Join(t.TempDir(), "bundle.tar")
	for _, name := range []string{image.BundleInstall, "sbin/tool"} {
		path := filepath.Join(tree, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, bytes.Repeat([]byte("x"), 100_000), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("tar", "-C", tree, "-cf", archive, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return image.Bundle{Archive: archive, Hash: "abc"}
}

type progressSink struct{ lines []string }

func (s *progressSink) Emit(e event.Event) {
	if e.State == event.Progress {
		s.lines = append(s.lines, e.Detail)
	}
}

func TestProvisioning(t *testing.T) {
	m := &stockMachine{t: t, root: t.TempDir(), fail: map[string]error{}}
	if err := errors.Join(os.MkdirAll(filepath.Join(m.root, "usr/sbin"), 0o755), os.Symlink("usr/sbin", filepath.Join(m.root, "sbin"))); err != nil {
		t.Fatal(err)
	}
	sink := &progressSink{}
	step := event.NewStream(sink).Start("cp1", "provision", 0)
	defer func() { _ = step.End(nil) }()
	p := bundleInstall{machine: m, bundle: stockBundle(t), step: step}
	expectDone := func(want bool) {
		t.Helper()
		if done, err := bundleInstalled(t.Context(), m); err != nil || done != want {
			t.Errorf("provisioned: %v, %v, want %v", done, err, want)
		}
	}
	expectDone(false)

	// Interrupted in each part, it is not done, and the parts after are not begun.
	lost := errors.New("connection lost")
	for i, program := range []string{"cloud-init", "tar", "install"} {
		m.fail, m.calls = map[string]error{program: lost}, nil
		if err := p.run(t.Context(), "id", "10.30.0.1", "abc"); !errors.Is(err, lost) || len(m.calls) != i+1 {
			t.Errorf("%s fails: %v after %q", program, err, m.calls)
		}
		m.fail = nil
		expectDone(false)
	}

	// A failure of a part of the image's own is none of the node's.
	m.fail = map[string]error{"cloud-init": &node.ExitError{Node: "cp1", Status: 1}}
	if err := p.run(t.Context(), "id", "10.30.0.1", "abc"); err != nil {
		t.Fatal(err)
	}
	expectDone(true)
	if !slices.Equal(m.script, []string{"id", "10.30.0.1", "abc"}) {
		t.Errorf("arguments %q", m.script)
	}
	if _, err := os.Stat(filepath.Join(m.root, "usr/sbin/tool")); err != nil {
		t.Errorf("the image's link was not followed: %v", err)
	}
	for _, want := range []string{"waiting for cloud-init", "cloud-init reports a failure, see /var/log/cloud-init.log there", "Unpacking b"} {
		if !slices.Contains(sink.lines, want) {
			t.Errorf("no progress %q in %q", want, sink.lines)
		}
	}

	// Not knowing is not the same as not done.
	m.fail = map[string]error{"test": lost}
	if _, err := bundleInstalled(t.Context(), m); !errors.Is(err, lost) {
		t.Errorf("a question that was not answered: %v", err)
	}
}

func TestCounted(t *testing.T) {
	sink := &progressSink{}
	step := event.NewStream(sink).Start("", "test", 0)
	defer func() { _ = step.End(nil) }()
	var out bytes.Buffer
	content := strings.Repeat("x", 5<<20)
	if _, err := out.ReadFrom(&tenthsReader{from: strings.NewReader(content), size: 5 << 20, step: step}); err != nil || out.String() != content {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
	if n := len(sink.lines); n == 0 || n > 10 || sink.lines[n-1] != "sent 5 of 5 MiB" {
		t.Errorf("got %q", sink.lines)
	}
}

func TestCheckBase(t *testing.T) {
	dir := t.TempDir()
	base := filepath.Join(dir, "base.qcow2")
	if out, err := exec.Command("qemu-img", "create", "-q", "-f", "qcow2", base, "19G").CombinedOutput(); err != nil {
		t.Skipf("qemu-img: %v: %s", err, out)
	}
	tests := []struct {
		name, base, uri string
		disk            int
		want            string // in the error, "" for none
	}{
		{"the lab's own image", "", host.Containers, 5, ""},
		{"fits", base, host.VirtualMachines, 19, ""},
		{"disk too small", base, host.VirtualMachines, 18, "has 19.0 GiB and the one of w1 would have 18; set resources.*.disk of the worker to more"},
		{"containers", base, host.Containers, 20, "set libvirt.uri: qemu:///system"},
		{"missing", filepath.Join(dir, "none"), host.VirtualMachines, 20, "no such file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := labtest.Closed(t, labtest.Small)
			l.Cluster.Image.Base, l.URI = tt.base, tt.uri
			l.Cluster.Resources.Worker.Disk = tt.disk
			err := CheckBase(l)
			if got := err != nil; got != (tt.want != "") || got && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
