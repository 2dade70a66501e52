package image

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"k8slab/config"
)

// own writes the lab's files as they get into an image.
func own(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := writeOwnFiles(root, config.Trixie, "registry.k8s.io/pause:3.10.2"); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestOwnFiles(t *testing.T) {
	root := own(t)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		want := fs.FileMode(0o644)
		if strings.HasPrefix(rel, ownScripts) {
			want = 0o755
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %s, want %s", rel, info.Mode(), want)
		}
		if bytes.Contains(data, []byte("PAUSE_IMAGE")) {
			t.Errorf("%s does not name the pause image", rel)
		}
		if len(data) > 0 && data[len(data)-1] != '\n' {
			t.Errorf("%s does not end in a newline", rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(filepath.Join(root, "etc/containerd/config.toml"))
	if err != nil || !bytes.Contains(config, []byte(`'registry.k8s.io/pause:3.10.2'`)) {
		t.Errorf("containerd's configuration does not name the pause image: %v\n%s", err, config)
	}
}

func TestScriptsParse(t *testing.T) {
	scripts, err := filepath.Glob(filepath.Join(own(t), ownScripts, "*"))
	if err != nil || len(scripts) == 0 {
		t.Fatal(scripts, err)
	}
	for _, path := range scripts {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil || !bytes.HasPrefix(text, []byte("#!/bin/sh\n")) {
				t.Errorf("not a shell script: %v", err)
			}
			if out, err := exec.Command("sh", "-n", path).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

var scriptName = regexp.MustCompile(`/usr/lib/k8slab/([a-z-]+)`)

// Every script that something of the lab names, in Go, in a unit or in another script, is there; and none is there for nothing.
func TestScriptsAreThoseNamed(t *testing.T) {
	root := own(t)
	named := map[string]string{}
	note := func(path string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range scriptName.FindAllSubmatch(text, -1) {
			named[string(m[1])] = path
		}
	}
	for _, pattern := range []string{"../cluster/*.go", "../machine/*.go", filepath.Join(root, "usr/lib/systemd/system/*"), filepath.Join(root, ownScripts, "*")} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && !strings.HasSuffix(path, "_test.go") {
				note(path)
			}
		}
	}
	for name, by := range named {
		if !exists(filepath.Join(root, ownScripts, name)) {
			t.Errorf("%s names the script %s, which is not there", by, name)
		}
	}
	scripts, err := os.ReadDir(filepath.Join(root, ownScripts))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scripts {
		if named[s.Name()] == "" {
			t.Errorf("nothing names the script %s", s.Name())
		}
	}
}

// A unit of the lab's own that is enabled has to be there, and has to say what it is wanted by.
func TestEnabledUnits(t *testing.T) {
	root := own(t)
	for _, unit := range enabledUnits {
		if !strings.HasPrefix(unit, "k8slab-") && unit != "containerd" && unit != "kubelet" {
			continue // Debian's
		}
		text, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system", unit+".service"))
		if err != nil || !bytes.Contains(text, []byte("WantedBy=")) {
			t.Errorf("%s: %v, want a unit with WantedBy", unit, err)
		}
	}
}

func TestOwnFilesHash(t *testing.T) {
	before, err := ownFilesHash(config.Trixie)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ownFilesHash(config.Trixie); err != nil || again != before {
		t.Errorf("%s, then %s, %v", before, again, err)
	}
	saved := enabledUnits
	defer func() { enabledUnits = saved }()
	enabledUnits = saved[1:]
	if after, err := ownFilesHash(config.Trixie); err != nil || after == before {
		t.Errorf("other units, the same hash: %v", err)
	}
}

// sshd of Debian 12 does not start with an option that it does not know.
func TestOwnFilesOfBookworm(t *testing.T) {
	const file = "etc/ssh/sshd_config.d/k8slab-penalties.conf"
	for suite, want := range map[string]bool{config.Bookworm: false, config.Trixie: true} {
		root := t.TempDir()
		if err := writeOwnFiles(root, suite, ""); err != nil {
			t.Fatal(err)
		}
		paths, err := bundlePaths(suite)
		if err != nil {
			t.Fatal(err)
		}
		if exists(filepath.Join(root, file)) != want || slices.Contains(paths, file) != want {
			t.Errorf("%s: in the image %v, in the bundle %v", suite, exists(filepath.Join(root, file)), slices.Contains(paths, file))
		}
	}
}

func TestPauseImage(t *testing.T) {
	if got := (&builder{images: kubeadmImages}).pauseImage(); got != "registry.k8s.io/pause:3.10.2" {
		t.Errorf("got %q", got)
	}
	if got := (&builder{}).pauseImage(); got != "" {
		t.Errorf("of no images: %q", got)
	}
}

func TestShareStore(t *testing.T) {
	root := t.TempDir()
	lib := filepath.Join(root, "var/lib/containerd")
	files := map[string]string{
		"io.containerd.snapshotter.v1.overlayfs/snapshots/1/fs/bin/sh":       "one",
		"io.containerd.snapshotter.v1.overlayfs/snapshots/12/fs/bin/sh":      "twelve",
		"io.containerd.content.v1.content/blobs/sha256/aa":                   "blob",
		"io.containerd.snapshotter.v1.overlayfs/metadata.db":                 "db",
		"io.containerd.snapshotter.v1.overlayfs/snapshots/12/work/unchanged": "",
	}
	for name, text := range files {
		path := filepath.Join(lib, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := shareStore(root); err != nil {
		t.Fatal(err)
	}
	links := map[string]string{
		"io.containerd.snapshotter.v1.overlayfs/snapshots/1/fs":  "layers/1",
		"io.containerd.snapshotter.v1.overlayfs/snapshots/12/fs": "layers/12",
		"io.containerd.content.v1.content/blobs/sha256/aa":       "blobs/aa",
	}
	for link, to := range links {
		// Absolute in the node, not on this computer.
		if got, err := os.Readlink(filepath.Join(lib, link)); err != nil || got != sharedStore+"/"+to {
			t.Errorf("%s leads to %q, %v", link, got, err)
		}
	}
	shared := filepath.Join(root, sharedStore)
	for name, want := range map[string]string{"layers/1/bin/sh": "one", "layers/12/bin/sh": "twelve", "blobs/aa": "blob"} {
		if got, err := os.ReadFile(filepath.Join(shared, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if info, err := os.Lstat(filepath.Join(lib, "io.containerd.snapshotter.v1.overlayfs/metadata.db")); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the database is not the node's own: %v", err)
	}
	if err := shareStore(t.TempDir()); err == nil || !strings.Contains(err.Error(), "layout has changed") {
		t.Errorf("an unknown layout: %v", err)
	}
}

func TestMakeDiskWantsOneKernel(t *testing.T) {
	root := t.TempDir()
	err := makeDisk(t.Context(), root, t.TempDir(), nil)
	if err == nil || !strings.Contains(err.Error(), "has 0 kernels") {
		t.Errorf("got %v", err)
	}
}

// kubeadm finds a patch's target by the file's name, and the container by the name in it.
func TestSlowProbes(t *testing.T) {
	dir := filepath.Join(own(t), SlowProbes)
	for _, target := range []string{"kube-apiserver", "etcd"} {
		text, err := os.ReadFile(filepath.Join(dir, target+"+strategic.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var pod struct {
			Spec struct{ Containers []struct{ Name string } }
		}
		if err := yaml.Unmarshal(text, &pod); err != nil || len(pod.Spec.Containers) != 1 || pod.Spec.Containers[0].Name != target {
			t.Errorf("the patch of %s is for %+v", target, pod.Spec.Containers)
		}
	}
}
