package kubefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"k8slab/lab/kubefile"
	"k8slab/lab/labtest"
	"k8slab/lab/state"
)

const admin = `{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: lab, cluster: {server: "https://10.30.0.10:6443"}}],
 contexts: [{name: a, context: {cluster: lab, user: a}}], users: [{name: a, user: {token: secret}}]}`

const work = `{apiVersion: v1, kind: Config, current-context: work, clusters: [{name: work, cluster: {server: "https://work:6443"}}],
 contexts: [{name: work, context: {cluster: work, user: me}}], users: [{name: me, user: {token: mine}}]}`

// home is a lab, and the path of the kubeconfig of its person, who has the content there; none for "".
func home(t *testing.T, content string) (state.Lab, string) {
	t.Helper()
	l := labtest.Closed(t, labtest.Small)
	t.Setenv("KUBECONFIG", "")
	file := filepath.Join(os.Getenv("HOME"), ".kube", "config")
	if content != "" {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return l, file
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestMergeAndRemove(t *testing.T) {
	for _, content := range []string{"", work} {
		l, file := home(t, content)
		m, err := kubefile.Merge(t.Context(), l, []byte(admin), "", false)
		if err != nil || m.File != file || m.Context != "k8slab-small" {
			t.Fatalf("%+v, %v", m, err)
		}
		if text := read(t, file); !strings.Contains(text, "https://10.30.0.10:6443") || strings.Contains(text, "https://work:6443") != (content != "") {
			t.Errorf("merged:\n%s", text)
		}
		if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		if err := kubefile.Renew(t.Context(), l, []byte(strings.ReplaceAll(admin, "10.30.0.10", "127.0.0.1"))); err != nil || !strings.Contains(read(t, file), "https://127.0.0.1:6443") {
			t.Errorf("renewed: %v\n%s", err, read(t, file))
		}
		if err := kubefile.Remove(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		if text := read(t, file); strings.Contains(text, "small") || strings.Contains(text, "secret") || strings.Contains(text, "mine") != (content != "") {
			t.Errorf("removed:\n%s", text)
		}
		entries, err := os.ReadDir(filepath.Dir(file))
		if err != nil || len(entries) != 1 {
			t.Errorf("beside it: %v, %v", entries, err)
		}
	}
}

// Each file that the lab was merged into is remembered, once, and may be gone when the lab is removed.
func TestSeveralFiles(t *testing.T) {
	l, first := home(t, work)
	second, third := filepath.Join(t.TempDir(), "my config"), filepath.Join(t.TempDir(), "gone")
	for _, file := range []string{"", second, second + ":/never/here", third} {
		t.Setenv("KUBECONFIG", file)
		if _, err := kubefile.Merge(t.Context(), l, []byte(admin), "", false); err != nil {
			t.Fatal(err)
		}
	}
	if files, err := kubefile.Files(l); err != nil || strings.Join(files, " ") != strings.Join([]string{first, second, third}, " ") {
		t.Errorf("%q, %v", files, err)
	}
	if err := errors.Join(os.Remove(third), kubefile.Remove(t.Context(), l)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(read(t, first)+read(t, second), "secret") {
		t.Error("the lab is still in a file")
	}
	if _, err := os.Stat(third); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that was gone: %v", err)
	}
}

// Whoever exported the lab's own kubeconfig does not get the lab merged into that.
func TestLabsOwnFileIsNoPersons(t *testing.T) {
	l, file := home(t, "")
	other := filepath.Join(t.TempDir(), "config")
	for set, want := range map[string]string{
		l.Path("kubeconfig"): file, "": file, ":": file, l.Path("kubeconfig") + ":" + other: other, other + ":" + file: other,
	} {
		t.Setenv("KUBECONFIG", set)
		if got, err := kubefile.Merge(t.Context(), l, []byte(admin), "", false); err != nil || got.File != want {
			t.Errorf("KUBECONFIG=%s: %+v, %v", set, got, err)
		}
	}
}

func TestLinkStays(t *testing.T) {
	l, file := home(t, "")
	target := filepath.Join(t.TempDir(), "config")
	if err := errors.Join(os.WriteFile(target, []byte(work), 0o600), os.MkdirAll(filepath.Dir(file), 0o700), os.Symlink(target, file)); err != nil {
		t.Fatal(err)
	}
	if _, err := kubefile.Merge(t.Context(), l, []byte(admin), "", false); err != nil || !strings.Contains(read(t, target), "secret") {
		t.Errorf("%v, and the target has\n%s", err, read(t, target))
	}
	if to, err := os.Readlink(file); err != nil || to != target {
		t.Errorf("the link leads to %s, %v", to, err)
	}
	if err := os.Remove(target); err != nil {
		t.Fatal(err)
	}
	if _, err := kubefile.Merge(t.Context(), l, []byte(admin), "", false); err == nil {
		t.Error("a link to nothing was written through")
	}
}

func TestLocked(t *testing.T) {
	l, file := home(t, work)
	if err := os.WriteFile(file+".lock", nil, 0); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		_, err := kubefile.Merge(t.Context(), l, []byte(admin), "", false)
		if err == nil || !strings.Contains(err.Error(), "next: rm "+file+".lock") {
			t.Errorf("got %v", err)
		}
		if text := read(t, file); text != work {
			t.Errorf("it was written:\n%s", text)
		}
	})
	if _, err := os.Stat(file + ".lock"); err != nil {
		t.Errorf("the other's lock: %v", err)
	}
}
