package lab

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8slab/lab/inventory"
	"k8slab/lab/labtest"
	"k8slab/lab/repair"
	"k8slab/lab/symptom"
)

// compare is what labnode says of the machine's files, or puts back from the archive.
func (b *box) compare(restore bool, archive string) ([]inventory.Difference, error) {
	if b.tree == "" {
		return []inventory.Difference{}, nil
	}
	list, err := inventory.Read(b.tree)
	switch {
	case err != nil:
		return nil, err
	case restore:
		return list.Restore(context.Background(), b.tree, strings.NewReader(archive))
	}
	return list.Compare(context.Background(), b.tree)
}

// imageFiles are the files of the node image of these tests.
var imageFiles = map[string]string{
	labnodePath: "the labnode", "/usr/sbin/runc": "the runc", "/etc/containerd/config.toml": "version = 3\n", "/usr/bin/less": "the less",
	"/usr/lib/systemd/system/containerd.service": "[Service]\n", "/usr/lib/systemd/system/rescue.service": "[Service]\n",
}

// imaged puts an image into the cache, and its files onto the machine. The image is gone where it was not kept.
func (w *world) imaged(name string, kept bool) *box {
	w.t.Helper()
	image, tree := w.t.TempDir(), w.t.TempDir()
	if kept {
		image = filepath.Join(os.Getenv("XDG_CACHE_HOME"), "k8slab", "node-v1-abc", "root")
	}
	put := func(root, file, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o755); err != nil {
			w.t.Fatal(err)
		}
	}
	for file, text := range imageFiles {
		put(image, file, text)
		put(tree, file, text)
	}
	components := map[string]string{"less": ""}
	files, err := inventory.Make(image, []string{"etc", "usr"}, func(file string) (string, bool) {
		name, known := components[filepath.Base(file)]
		if !known {
			name = cmp.Or(map[string]string{"labnode": "labnode", "rescue.service": "systemd"}[filepath.Base(file)], "containerd")
		}
		return name, file != inventory.Path
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, root := range []string{image, tree} {
		if err := (inventory.List{Files: files}).Write(root); err != nil {
			w.t.Fatal(err)
		}
	}
	b := w.box(name)
	b.tree = tree
	return b
}

func (b *box) has(t *testing.T, file, want string) {
	t.Helper()
	if text, err := os.ReadFile(filepath.Join(b.tree, file)); err != nil || string(text) != want {
		t.Errorf("%s is %q, %v, want %q", file, text, err, want)
	}
}

func (b *box) write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(b.tree, file), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// onImaged runs the test in a lab that is up, whose w1 was made from an image that the cache still has if it was kept.
func onImaged(t *testing.T, kept bool, do func(*testing.T, *world, *box)) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.clean()
		do(t, w, w.imaged("w1", kept))
	})
}

// Files that are not the image's come back from the image in the cache; what stood there is kept; what reads them is restarted. A dry run
// says so.
func TestRepairPutsFilesBack(t *testing.T) {
	onImaged(t, true, func(t *testing.T, w *world, b *box) {
		b.write(t, "/usr/sbin/runc", "")
		b.write(t, "/etc/containerd/config.toml", "version = 2 # an administrator's\n")
		const mask = "/etc/systemd/system/containerd.service"
		if err := os.MkdirAll(filepath.Join(b.tree, "/etc/systemd/system"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/dev/null", filepath.Join(b.tree, mask)); err != nil {
			t.Fatal(err)
		}
		foreseen, err := w.lab.Repair(t.Context(), true, repair.Restart)
		if err != nil || len(foreseen) != 1 || !strings.Contains(foreseen[0].Would, "restart containerd") || len(w.lab.Changes()) > 0 {
			t.Errorf("a dry run: %+v, %v, changed %q", foreseen, err, w.lab.Changes())
		}
		found, err := w.lab.Repair(t.Context(), false, repair.Restart)
		if err != nil || len(found) != 1 || found[0].Did == "" || found[0].Node != "w1" || found[0].Symptom != string(symptom.FileChanged) ||
			!strings.Contains(found[0].Evidence, "/usr/sbin/runc: it is empty") {
			t.Errorf("%+v, %v", found, err)
		}
		b.has(t, "/usr/sbin/runc", "the runc")
		b.has(t, "/etc/containerd/config.toml", "version = 3\n")
		b.has(t, "/etc/containerd/config.toml.k8slab-saved", "version = 2 # an administrator's\n")
		if _, err := os.Lstat(filepath.Join(b.tree, mask)); err == nil {
			t.Error("the mask is still there")
		}
		w.wantOrder("w1: /usr/bin/labnode files --restore", "w1: systemctl daemon-reload", "w1: systemctl restart containerd")
		w.wantHealthy()
		if again, err := w.lab.Repair(t.Context(), false, repair.Restart); err != nil || len(again) > 0 {
			t.Errorf("a second repair: %+v, %v", again, err)
		}
	})
}

// Units that would end the machine are unmasked, and never started.
func TestRepairStartsNoUnitThatWasMasked(t *testing.T) {
	onImaged(t, true, func(t *testing.T, w *world, b *box) {
		b.write(t, "/usr/bin/less", "no less")
		if err := os.MkdirAll(filepath.Join(b.tree, "/etc/systemd/system"), 0o755); err != nil {
			t.Fatal(err)
		}
		b.write(t, "/etc/systemd/system/rescue.service", "")
		if _, err := w.lab.Repair(t.Context(), false, repair.Restart); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(w.lab.Changes(), func(c string) bool { return strings.Contains(c, "rescue") }) || w.count("w1: systemctl") != 1 {
			t.Errorf("changed %q", w.lab.Changes())
		}
		b.has(t, "/usr/bin/less", "the less")
	})
}

// A labnode that does not run is copied first: it restores the others.
func TestRepairPutsLabnodeBack(t *testing.T) {
	onImaged(t, true, func(t *testing.T, w *world, b *box) {
		b.write(t, "/usr/sbin/runc", "no runc")
		text, err := os.ReadFile(filepath.Join(b.tree, inventory.Path))
		if err != nil {
			t.Fatal(err)
		}
		w.change(func() { b.noLabnode, b.files[inventory.Path] = true, string(text) })
		if found, err := w.lab.Repair(t.Context(), true, repair.Restart); err != nil || len(found) == 0 || !strings.Contains(found[0].Evidence, labnodePath+" does not run") || found[0].Would == "" {
			t.Errorf("a dry run: %+v, %v", found, err)
		}
		found, err := w.lab.Repair(t.Context(), false, repair.Restart)
		if err != nil || len(found) != 2 || found[0].Did == "" || found[1].Did == "" || b.files[labnodePath] != "the labnode" {
			t.Errorf("%+v, %v, labnode %q", found, err, b.files[labnodePath])
		}
		b.has(t, "/usr/sbin/runc", "the runc")
	})
}

// What no image in the cache has is left, with the command that makes the image again.
func TestRepairWithoutTheImage(t *testing.T) {
	onImaged(t, false, func(t *testing.T, w *world, b *box) {
		b.write(t, "/usr/sbin/runc", "")
		found, err := w.lab.Repair(t.Context(), false, repair.Restart)
		if err != nil || !slices.ContainsFunc(found, func(r repair.Repaired) bool {
			return r.Node == "w1" && strings.Contains(r.Left, "labctl image build") && strings.Contains(r.Evidence, "/usr/sbin/runc")
		}) {
			t.Errorf("%+v, %v", found, err)
		}
		b.has(t, "/usr/sbin/runc", "")
	})
}

// The node says which content it wants. It gets what an image has, and nothing else of this computer.
func TestRepairGivesNoOtherFile(t *testing.T) {
	onImaged(t, true, func(t *testing.T, w *world, b *box) {
		secret := filepath.Join(os.Getenv("XDG_CACHE_HOME"), "k8slab", "node-v1-abc", "secret")
		if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte("secret")))
		list := inventory.List{Files: []inventory.File{{Path: "/etc/secret", Mode: 0o644, Size: 6, SHA256: sum, Component: "x"}}}
		if err := list.Write(b.tree); err != nil {
			t.Fatal(err)
		}
		if _, err := w.lab.Repair(t.Context(), false, repair.Restart); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(b.tree, "/etc/secret")); err == nil || w.count("w1: /usr/bin/labnode files --restore") > 0 {
			t.Errorf("%v, changed %q", err, w.lab.Changes())
		}
	})
}
