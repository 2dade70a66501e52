package diagnose

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"k8slab/lab/symptom"
)

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFromText(t *testing.T) {
	r, err := From("-", strings.NewReader(socketGone+"\n"))
	if err != nil || r.Healthy || !r.Failed() || r.Source != "-" || r.Findings[0].Symptom != symptom.RuntimeSocketMissing {
		t.Errorf("%+v %v", r, err)
	}
	r, err = From("-", strings.NewReader("all is well\n"))
	if err != nil || !r.Healthy || r.Findings == nil || r.Failed() {
		t.Errorf("%+v %v", r, err)
	}
}

func TestFromDirectory(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"cp1/containerd.log": "level=info msg=started\n",
		"w1/kubelet.log":     socketGone + "\n",
		"w1/kubeadm.log": "[preflight] Running pre-flight checks\n[kubelet-check] It seems like the kubelet isn't running or healthy.\n" +
			"error execution phase kubelet-start: timed out waiting for the condition\n",
	})
	r, err := From(dir, nil)
	if err != nil || len(r.Findings) < 2 {
		t.Fatalf("%+v %v", r, err)
	}
	first := r.Findings[0]
	if first.Symptom != symptom.RuntimeSocketMissing || first.Node != "w1" || !strings.HasPrefix(first.Evidence[0].Source, "w1/kubelet.log") {
		t.Errorf("%+v", first)
	}
	for _, f := range r.Findings[1:] {
		if f.BecauseOf != symptom.RuntimeSocketMissing {
			t.Errorf("%+v", f)
		}
	}
}

func TestFromDirectoryFollowsNoLink(t *testing.T) {
	outside := t.TempDir()
	write(t, outside, map[string]string{"kubelet.log": socketGone + "\n"})
	dir := t.TempDir()
	write(t, dir, map[string]string{"fine.log": "all is well\n"})
	for name, to := range map[string]string{"file.log": filepath.Join(outside, "kubelet.log"), "dir": outside} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := From(dir, nil); err != nil || !r.Healthy {
		t.Errorf("%+v %v", r, err)
	}
}

// What is empty or cannot be read says nothing about a cluster, so there is no verdict.
func TestFromNothing(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"blank.log": " \n\n", "blank/w1/kubelet.log": "", "blank/w2/kubelet.log": "\n", "some/w1/kubelet.log": "", "some/w2/kubelet.log": "all is well\n"})
	none := t.TempDir()
	absent := filepath.Join(dir, "absent")
	for _, tt := range []struct{ path, in, want string }{
		{"-", "", "standard input is empty: the command before the pipe printed nothing"},
		{"-", " \n\t\n", "standard input is empty: the command before the pipe printed nothing"},
		{absent, "", "read " + absent + ": no such file or directory"},
		{none, "", "read " + none + ": it has no files"},
		{filepath.Join(dir, "blank.log"), "", "read " + filepath.Join(dir, "blank.log") + ": it is empty"},
		{filepath.Join(dir, "blank"), "", "read " + filepath.Join(dir, "blank") + ": all of its files are empty"},
	} {
		if r, err := From(tt.path, strings.NewReader(tt.in)); err == nil || err.Error() != tt.want || r.Source != "" {
			t.Errorf("%s %q: %+v %v, want %s", tt.path, tt.in, r, err, tt.want)
		}
	}
	if r, err := From(filepath.Join(dir, "some"), nil); err != nil || !r.Healthy {
		t.Errorf("one of two files has text: %+v %v", r, err)
	}
	if r, err := From("-", iotest.ErrReader(errors.New("torn"))); err == nil || err.Error() != "read standard input: torn" || r.Source != "" {
		t.Errorf("%+v %v", r, err)
	}
}

// A text that says that something failed, and not what, is neither failed nor healthy.
func TestFromUndetermined(t *testing.T) {
	const text = "2026-01-01T10:00:01Z ERROR gizmo 7 exploded\n"
	r, err := From("-", strings.NewReader("2026-01-01T10:00:00Z INFO starting\n"+text))
	if err != nil || r.Healthy || r.Failed() || len(r.Findings) > 0 || len(r.Undetermined) != 1 ||
		!strings.Contains(r.Undetermined[0], "stdin, line 2: "+strings.TrimSpace(text)) {
		t.Errorf("%+v %v", r, err)
	}
	for _, want := range []string{"Undetermined: ", "gizmo 7 exploded"} {
		if got := textOf(t, r, 80, false); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{"w1/kubelet.log": text, "w2/kubelet.log": "all is well\n"})
	if r, err = From(dir, nil); err != nil || r.Healthy || len(r.Undetermined) != 1 {
		t.Errorf("%+v %v", r, err)
	}
}
