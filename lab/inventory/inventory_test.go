package inventory

import (
	"archive/tar"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// made is when the files of these tests were made.
var made = time.Unix(1_700_000_000, 0)

func write(t *testing.T, root, file, text string, mode os.FileMode) {
	t.Helper()
	at := filepath.Join(root, file)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(at)
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(at, mode); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, root, file, target string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(root, file))
	if err := os.Symlink(target, filepath.Join(root, file)); err != nil {
		t.Fatal(err)
	}
}

// contents are those of the tests' image.
var contents = map[string]string{
	"/usr/bin/containerd": "the program", "/etc/containerd/config.toml": "version = 3\n", "/etc/cni/net.d/10-flannel.conflist": "{}",
	"/usr/lib/systemd/system/containerd.service": "[Unit]\n", "/usr/lib/systemd/system/unused.service": "[Unit]\n", "/usr/bin/sudo": "a set-ID program",
}

// tree is a machine as its image made it, with the list.
func tree(t *testing.T) (string, List) {
	t.Helper()
	root := t.TempDir()
	for file, text := range contents {
		mode := os.FileMode(0o644)
		if strings.HasPrefix(file, "/usr/bin") {
			mode = 0o755
		}
		write(t, root, file, text, mode)
		if err := os.Chtimes(filepath.Join(root, file), made, made); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(root, "/usr/bin/sudo"), 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	link(t, root, "/etc/systemd/system/multi-user.target.wants/containerd.service", "/lib/systemd/system/containerd.service")
	files, err := Make(root, []string{"etc", "usr", "absent"}, func(file string) (string, bool) {
		return map[bool]string{true: "containerd"}[!strings.Contains(file, "unused")], file != "/usr/bin/hidden"
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := (List{Files: files}).Write(root); err != nil {
		t.Fatal(err)
	}
	list, err := Read(root)
	if err != nil || !slices.Equal(list.Files, files) {
		t.Fatalf("%v, read %d files of %d", err, len(list.Files), len(files))
	}
	return root, list
}

// archived are contents as labctl sends them.
func archived(t *testing.T, files map[string]string) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for file, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: file, Mode: 0o600, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte(text))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

func compared(t *testing.T, root string, l List) []Difference {
	t.Helper()
	found, err := l.Compare(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func told(all []Difference) string {
	var lines []string
	for _, d := range all {
		lines = append(lines, string(d.Kind)+" "+d.String())
	}
	return strings.Join(lines, "\n")
}

const flannel = "/etc/cni/net.d/10-flannel.conflist"

// damages are what happens to files, what is said of it, and what is kept of what stood there.
var damages = []struct {
	name   string
	damage func(t *testing.T, root string)
	want   string
	saved  string // a file, and what it has
}{
	{"a program is gone", func(t *testing.T, root string) { _ = os.Remove(filepath.Join(root, "/usr/bin/containerd")) },
		"missing /usr/bin/containerd: it is not there", ""},
	{"a program is empty", func(t *testing.T, root string) { write(t, root, "/usr/bin/containerd", "", 0o755) },
		"changed /usr/bin/containerd: it is empty", ""},
	{"a configuration is shorter", func(t *testing.T, root string) { write(t, root, "/etc/containerd/config.toml", "x", 0o644) },
		"changed /etc/containerd/config.toml: it has 1 bytes, not 12", "/etc/containerd/config.toml.k8slab-saved=x"},
	{"a configuration of the same size", func(t *testing.T, root string) {
		write(t, root, "/etc/containerd/config.toml", "version = 2\n", 0o644)
	}, "changed /etc/containerd/config.toml: its content is another", "/etc/containerd/config.toml.k8slab-saved=version = 2\n"},
	{"a program may not run", func(t *testing.T, root string) { _ = os.Chmod(filepath.Join(root, "/usr/bin/containerd"), 0o644) },
		"changed /usr/bin/containerd: its mode is 0644, not 0755", ""},
	{"a set-ID program lost its bit", func(t *testing.T, root string) { _ = os.Chmod(filepath.Join(root, "/usr/bin/sudo"), 0o755) },
		"changed /usr/bin/sudo: its mode is 0755, not 4755", ""},
	{"a directory is gone", func(t *testing.T, root string) { _ = os.RemoveAll(filepath.Join(root, "/etc/cni")) },
		"missing /etc/cni: it is not there\nmissing /etc/cni/net.d: it is not there\nmissing " + flannel + ": it is not there", ""},
	{"a file in a directory's place", func(t *testing.T, root string) {
		_ = os.RemoveAll(filepath.Join(root, "/etc/cni/net.d"))
		write(t, root, "/etc/cni/net.d", "junk", 0o644)
	}, "changed /etc/cni/net.d: it is not a directory\nmissing " + flannel + ": it is not there", "/etc/cni/net.d.k8slab-saved=junk"},
	{"a directory in a file's place", func(t *testing.T, root string) {
		_ = os.Remove(filepath.Join(root, flannel))
		write(t, root, flannel+"/in", "kept", 0o644)
	}, "changed " + flannel + ": it is not a plain file", flannel + ".k8slab-saved/in=kept"},
	{"a link in a file's place", func(t *testing.T, root string) { link(t, root, "/usr/bin/containerd", "/dev/null") },
		"changed /usr/bin/containerd: it is not a plain file", ""},
	{"a unit is disabled", func(t *testing.T, root string) {
		_ = os.Remove(filepath.Join(root, "/etc/systemd/system/multi-user.target.wants/containerd.service"))
	}, "missing /etc/systemd/system/multi-user.target.wants/containerd.service: it is not there", ""},
	{"a link leads elsewhere", func(t *testing.T, root string) {
		link(t, root, "/etc/systemd/system/multi-user.target.wants/containerd.service", "/dev/null")
	}, "changed /etc/systemd/system/multi-user.target.wants/containerd.service: it leads to /dev/null, not to /lib/systemd/system/containerd.service", ""},
	{"a unit is masked", func(t *testing.T, root string) { link(t, root, "/etc/systemd/system/containerd.service", "/dev/null") },
		"masks /etc/systemd/system/containerd.service: it masks the unit, which cannot start", ""},
}

// Every damage is found, put back with the list's mode and time, and found no more; what a person may have made is kept.
func TestRestore(t *testing.T) {
	for _, tt := range damages {
		t.Run(tt.name, func(t *testing.T) {
			root, l := tree(t)
			if found := compared(t, root, l); len(found) > 0 {
				t.Fatalf("before: %s", told(found))
			}
			tt.damage(t, root)
			found := compared(t, root, l)
			if told(found) != tt.want {
				t.Errorf("got\n%s\nwant\n%s", told(found), tt.want)
			}
			done, err := l.Restore(t.Context(), root, archived(t, contents))
			if err != nil || len(done) != len(found) {
				t.Errorf("%v, put back %s", err, told(done))
			}
			if left := compared(t, root, l); len(left) > 0 {
				t.Errorf("left: %s", told(left))
			}
			if info, err := os.Stat(filepath.Join(root, "/usr/bin/containerd")); err != nil || !info.ModTime().Equal(made) {
				t.Errorf("%v, it was changed %v", err, info.ModTime())
			}
			if file, want, keeps := strings.Cut(tt.saved, "="); keeps {
				if text, err := os.ReadFile(filepath.Join(root, file)); err != nil || string(text) != want {
					t.Errorf("kept %q, %v", text, err)
				}
			}
		})
	}
}

// A file that was copied back by hand is the image's; its time is set, so that it is not read again each time.
func TestTimeAloneIsNoDifference(t *testing.T) {
	root, l := tree(t)
	write(t, root, "/usr/bin/containerd", contents["/usr/bin/containerd"], 0o755)
	if found := compared(t, root, l); len(found) > 0 {
		t.Errorf("%s", told(found))
	}
	if _, err := l.Restore(t.Context(), root, archived(t, nil)); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(root, "/usr/bin/containerd")); err != nil || !info.ModTime().Equal(made) {
		t.Errorf("%v, it was changed %v", err, info.ModTime())
	}
}

// What is not the list's content is not written, and what is not given stays; the other files are put back all the same.
func TestRestoreRefusesAnotherContent(t *testing.T) {
	root, l := tree(t)
	write(t, root, "/usr/bin/containerd", "mine", 0o755)
	write(t, root, "/etc/containerd/config.toml", "mine", 0o644)
	_ = os.Chmod(filepath.Join(root, flannel), 0o600)
	given := archived(t, map[string]string{"/usr/bin/containerd": "of somebody", "/etc/passwd": "of somebody"})
	done, err := l.Restore(t.Context(), root, given)
	if err == nil || !strings.Contains(err.Error(), "put /usr/bin/containerd back: the content that was given is another") || told(done) != "changed "+flannel+": its mode is 0600, not 0644" {
		t.Errorf("%v, put back %q", err, told(done))
	}
	for _, file := range []string{"/usr/bin/containerd", "/etc/containerd/config.toml"} {
		if text, err := os.ReadFile(filepath.Join(root, file)); err != nil || string(text) != "mine" {
			t.Errorf("%s: %q, %v", file, text, err)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "/etc/passwd")); err == nil {
		t.Error("it wrote a file that is not in the list")
	}
	if left, _ := filepath.Glob(filepath.Join(root, "usr/bin/.new-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// Nothing that a person may have made is lost, however often files are put back.
func TestRestoreKeepsEachOldFile(t *testing.T) {
	root, l := tree(t)
	for _, text := range []string{"one", "two"} {
		write(t, root, "/etc/containerd/config.toml", text, 0o644)
		if _, err := l.Restore(t.Context(), root, archived(t, contents)); err != nil {
			t.Fatal(err)
		}
	}
	for ending, want := range map[string]string{".k8slab-saved": "one", ".k8slab-saved-1": "two"} {
		if text, err := os.ReadFile(filepath.Join(root, "/etc/containerd/config.toml"+ending)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", ending, text, err)
		}
	}
}

// Files that the image does not have count only where they change what a component does.
func TestExtraFiles(t *testing.T) {
	tests := []struct{ file, want string }{
		{"/etc/cni/net.d/00-old.conflist", "instead of 10-flannel.conflist"},
		{"/etc/cni/net.d/99-other.conflist", ""},
		{"/etc/cni/net.d/00-old.conflist.k8slab-saved", ""},
		{"/etc/containerd/conf.d/mirror.toml", "besides its configuration"},
		{"/etc/containerd/certs.d/hosts.toml", ""},
		{"/etc/systemd/system/containerd.service.d/memory.conf", "besides containerd.service"},
		{"/etc/systemd/system/containerd.service.d/10.conf.k8slab-saved", ""},
		{"/etc/systemd/system/containerd.service", "instead of /usr/lib/systemd/system/containerd.service"},
		{"/etc/systemd/system/mine.service", ""},
		{"/etc/systemd/system/unused.service", ""},
		{"/usr/bin/tool", ""},
	}
	for _, tt := range tests {
		root, l := tree(t)
		write(t, root, tt.file, "x", 0o644)
		found := compared(t, root, l)
		if tt.want == "" && len(found) > 0 || tt.want != "" && (len(found) != 1 || found[0].Kind != Extra || !strings.Contains(found[0].What, tt.want)) {
			t.Errorf("%s: %s", tt.file, told(found))
		}
		if done, err := l.Restore(t.Context(), root, archived(t, contents)); err != nil || len(done) > 0 {
			t.Errorf("%s: %v, put back %s", tt.file, err, told(done))
		}
		if _, err := os.Stat(filepath.Join(root, tt.file)); err != nil {
			t.Error(err)
		}
	}
}

// A machine without a list has nothing to compare, whatever is on it; a list that cannot be read is an error.
func TestNoList(t *testing.T) {
	root, _ := tree(t)
	link(t, root, "/etc/systemd/system/containerd.service", "/dev/null")
	if err := os.Remove(filepath.Join(root, Path)); err != nil {
		t.Fatal(err)
	}
	l, err := Read(root)
	if found := compared(t, root, l); err != nil || len(found) > 0 {
		t.Errorf("%v, %s", err, told(found))
	}
	for _, text := range []string{"{", `{"files": [{"path": "/../etc/passwd"}]}`, `{"files": [{"path": "etc/passwd"}]}`} {
		write(t, root, Path, text, 0o644)
		if _, err := Read(root); err == nil || !strings.Contains(err.Error(), Path) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestCompareEnds(t *testing.T) {
	root, l := tree(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Compare(ctx, root); err == nil {
		t.Error("no error")
	}
}
