package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8slab/lab/kubefile"
	"k8slab/lab/labtest"
)

// person is the kubeconfig of the test's person.
func person(t *testing.T) (path, text string) {
	t.Helper()
	path = filepath.Join(os.Getenv("HOME"), ".kube", "config")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, string(content)
}

// up keeps what was merged into a person's kubeconfig as the lab's own says it, and goes on if it cannot.
func TestUpRenewsTheMergedKubeconfig(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		t.Setenv("KUBECONFIG", "")
		w.up()
		own, err := os.ReadFile(w.lab.found.Path("kubeconfig"))
		if err != nil {
			t.Fatal(err)
		}
		old := strings.ReplaceAll(string(own), ":6443", ":6444")
		if _, err := kubefile.Merge(t.Context(), w.lab.found, []byte(old), "", false); err != nil {
			t.Fatal(err)
		}
		w.clean()
		w.up()
		path, text := person(t)
		if strings.Contains(text, ":6444") || !strings.Contains(text, ":6443") || !strings.Contains(text, "current-context: k8slab-") || len(w.lab.Changes()) > 0 {
			t.Errorf("changes %q, and it says\n%s", w.lab.Changes(), text)
		}
		if err := os.WriteFile(path, []byte("clusters: ["), 0o600); err != nil {
			t.Fatal(err)
		}
		w.up()
		if _, text := person(t); text != "clusters: [" {
			t.Errorf("a broken file became\n%s", text)
		}
	})
}

func TestDownOfAClusterThatExistsUnmerges(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		t.Setenv("KUBECONFIG", "")
		w.up()
		l := w.home(nil)
		text, err := l.AdminConf(t.Context())
		if err == nil {
			err = l.Closed().Remember()
		}
		if err == nil {
			_, err = kubefile.Merge(t.Context(), l.Closed(), text, "", true)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, text := person(t); !strings.Contains(text, "current-context: k8slab-home") {
			t.Errorf("merged:\n%s", text)
		}
		if err := l.Down(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if _, text := person(t); strings.Contains(text, "home") {
			t.Errorf("after down:\n%s", text)
		}
		if _, err := os.Stat(l.Closed().Path()); err == nil {
			t.Error("the cluster is still remembered")
		}
	})
}
