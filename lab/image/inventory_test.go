package image

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/inventory"
)

func TestStoredImages(t *testing.T) {
	const table = `REF                                TYPE                                                 DIGEST                  SIZE      PLATFORMS   LABELS
docker.io/k8slab/flannel:lab       application/vnd.docker.distribution.manifest.v2+json sha256:3ca6fca7         54.9 MiB  linux/amd64 io.cri-containerd.pinned=pinned
registry.k8s.io/pause:3.10.2       application/vnd.docker.distribution.manifest.v2+json sha256:868c5971         344.2 KiB linux/amd64 io.cri-containerd.pinned=pinned
`
	const manifest = "application/vnd.docker.distribution.manifest.v2+json"
	want := []inventory.Image{{Name: "docker.io/k8slab/flannel:lab", MediaType: manifest, Digest: "sha256:3ca6fca7"}, {Name: "registry.k8s.io/pause:3.10.2", MediaType: manifest, Digest: "sha256:868c5971"}}
	if got := storedImages(table); !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
}

// kubelet removes what is not pinned when a disk is full, and no registry gives it back.
func TestEveryImageIsPinned(t *testing.T) {
	if i := slices.Index(importing, "--label"); i < 0 || importing[i+1] != "io.cri-containerd.pinned=pinned" {
		t.Errorf("imported with %q", importing)
	}
}

func TestComponentOf(t *testing.T) {
	tests := []struct {
		file, component string
		listed          bool
	}{
		{"/usr/sbin/runc", "containerd", true}, {"/usr/bin/containerd-shim-runc-v2", "containerd", true}, {"/etc/containerd/config.toml", "containerd", true},
		{"/usr/bin/kubelet", "kubelet", true}, {"/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf", "kubelet", true},
		{"/opt/cni/bin/bridge", "pod network", true}, {"/usr/share/k8slab/cni-plugins/bridge", "pod network", true},
		{"/usr/share/k8slab/containerd/blobs/ab", "container images", true}, {"/usr/share/k8slab/patient/etcd+strategic.yaml", "labnode", true},
		{"/usr/lib/systemd/systemd-journald", "systemd", true}, {"/etc/ssh/sshd_config", "ssh", true}, {"/usr/lib/x86_64-linux-gnu/libc.so.6", "libraries", true},
		{"/usr/bin/less", "", true},
		{inventory.Path, "", false}, {"/etc/ssh/ssh_host_ed25519_key", "", false}, {"/etc/systemd/network/10-lab.network", "", false},
		{"/usr/lib/x86_64-linux-gnu/perl-base/x.pm", "", false},
	}
	for _, tt := range tests {
		if component, listed := componentOf(tt.file); component != tt.component || listed != tt.listed {
			t.Errorf("%s: %q, %v", tt.file, component, listed)
		}
	}
}

// Each of the lab's own files, and each program that it puts into a node, is listed and needed by something; what makes a node the one that
// it is, is not listed.
func TestWhatTheLabInstallsIsListed(t *testing.T) {
	paths, err := bundlePaths(config.Trixie)
	if err != nil {
		t.Fatal(err)
	}
	own := []string{staticPods, rootsKubeconfig, "var/lib/containerd"}
	for _, path := range paths {
		inPlaces := slices.ContainsFunc(listedPlaces, func(place string) bool { return isOrBelow(path, place) })
		component, listed := componentOf("/" + path)
		if ok := inPlaces && listed && component != ""; !ok && !slices.Contains(own, path) {
			t.Errorf("%s: in the places %v, listed %v, for %q", path, inPlaces, listed, component)
		}
	}
	for _, path := range []string{"etc/hostname", "etc/hosts", "etc/machine-id", "etc/resolv.conf", "etc/keepalived/keepalived.conf", "root/.ssh/authorized_keys", "var/lib/containerd"} {
		if slices.ContainsFunc(listedPlaces, func(place string) bool { return isOrBelow(path, place) }) {
			t.Errorf("%s is a node's own", path)
		}
	}
}

// cachedImage makes a node image with the files in the cache.
func cachedImage(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	root := filepath.Join(os.Getenv("XDG_CACHE_HOME"), "k8slab", name, "root")
	for file, text := range files {
		write(t, filepath.Join(root, file), []byte(text), 0o644)
	}
	if err := writeInventory(root, []inventory.Image{{Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestOriginals(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	old := cachedImage(t, "node-v1-old", map[string]string{"usr/sbin/runc": "the old runc"})
	cachedImage(t, "node-v1-new", map[string]string{"usr/sbin/runc": "the runc", "usr/bin/gone": "x"})
	write(t, filepath.Join(old, "secret"), []byte("secret"), 0o600) // in no list
	write(t, filepath.Join(filepath.Dir(filepath.Dir(old)), "node-v1-older", "root", "usr/sbin/runc"), []byte("the oldest runc"), 0o644)
	sum := func(file string) string {
		digest, err := fileHash(file)
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	o, err := OpenOriginals()
	if err != nil {
		t.Fatal(err)
	}
	want := sum(filepath.Join(old, "usr/sbin/runc"))
	content, size, err := o.Open("/usr/sbin/runc", want)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	if text, _ := io.ReadAll(content); string(text) != "the old runc" || size != int64(len(text)) {
		t.Errorf("%q, %d bytes", text, size)
	}
	for file, digest := range map[string]string{
		"/usr/sbin/runc": strings.Repeat("0", 64), "/secret": sum(filepath.Join(old, "secret")), "/../root/usr/sbin/runc": want, "/usr/bin/other": want,
	} {
		if _, _, err := o.Open(file, digest); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// A link in an image does not lead out of it.
func TestOriginalsStayInTheImage(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, "runc"), []byte("of this computer"), 0o644)
	if err := os.Symlink(outside, filepath.Join(root, "usr")); err != nil {
		t.Fatal(err)
	}
	if f, err := openIn(root, "/usr/runc"); err == nil {
		f.Close()
		t.Error("it was opened")
	}
}

// The bundle's list has what the bundle brings: the rest of a machine with a stock image is that image's.
func TestBundledList(t *testing.T) {
	l := inventory.List{Images: []inventory.Image{{Name: "a"}}}
	for _, file := range []string{"/usr/bin/kubelet", "/usr/bin/less", "/opt/cni/bin", "/opt/cni/bin/flannel", "/usr/share/k8slab/cni"} {
		l.Files = append(l.Files, inventory.File{Path: file})
	}
	got := bundled(l, []string{"usr/bin/kubelet", "opt/cni/bin/flannel", "usr/share/k8slab"})
	var files []string
	for _, f := range got.Files {
		files = append(files, f.Path)
	}
	if !slices.Equal(files, []string{"/usr/bin/kubelet", "/opt/cni/bin/flannel", "/usr/share/k8slab/cni"}) || len(got.Images) != 1 || len(l.Files) != 5 {
		t.Errorf("%q, %+v, of %d", files, got.Images, len(l.Files))
	}
}
