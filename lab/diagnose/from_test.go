package diagnose

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	r, err = From("-", strings.NewReader(""))
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

func TestFromNothing(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "absent"), t.TempDir()} {
		if r, err := From(path, nil); err == nil || r.Source != path {
			t.Errorf("%s: %+v %v", path, r, err)
		}
	}
}
