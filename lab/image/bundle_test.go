package image

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/inventory"
)

// Each of the lab's files is in the bundle, or is known not to be.
func TestBundlePaths(t *testing.T) {
	paths, err := bundlePaths(config.Trixie)
	if err != nil {
		t.Fatal(err)
	}
	var own []string
	err = fs.WalkDir(ownFiles, ownRoot, func(file string, d fs.DirEntry, err error) error {
		if !d.IsDir() {
			own = append(own, strings.TrimPrefix(file, ownRoot+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range notInBundle {
		if !slices.Contains(own, file) {
			t.Errorf("the lab has no file %s that a bundle could leave out", file)
		}
	}
	for _, file := range own {
		if slices.Contains(paths, file) == slices.Contains(notInBundle, file) {
			t.Errorf("%s: is it in the bundle or not?", file)
		}
	}
	for _, file := range []string{
		"usr/bin/kubelet", "usr/bin/kubeadm", "usr/bin/containerd", "usr/bin/containerd-shim-runc-v2", "usr/bin/labnode", "opt/cni/bin/flannel",
		"opt/cni/bin/portmap", "usr/share/k8slab", "var/lib/containerd", "usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf",
	} {
		if !slices.Contains(paths, file) {
			t.Errorf("no %s", file)
		}
	}
	for _, file := range []string{"etc/fstab", "usr/lib/systemd/system/k8slab-seed.service", "usr/lib/systemd/system/keepalived.service.d/10-address.conf"} {
		if slices.Contains(paths, file) {
			t.Errorf("%s would break a stock image", file)
		}
	}
	for _, unit := range bundleEnabled {
		if !slices.Contains(paths, "usr/lib/systemd/system/"+unit+".service") {
			t.Errorf("%s is to be enabled, and is not there", unit)
		}
	}
	bare := func(unit string) bool { return slices.Contains(bareUnits, unit) }
	if slices.ContainsFunc(bundleMasked, bare) || !slices.Contains(bundleMasked, "swap.target") {
		t.Errorf("masked: %q", bundleMasked)
	}
}

func TestMakeBundle(t *testing.T) {
	root, debs, dir := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, filepath.Join(root, "usr/bin/kubelet"), []byte("kubelet"), 0o755)
	write(t, filepath.Join(root, "usr/bin/bash"), []byte("Debian's"), 0o755)
	write(t, filepath.Join(root, "usr/share/k8slab/containerd/layers/1/etc/shadow"), []byte("shadow"), 0o640)
	write(t, filepath.Join(debs, "Packages"), []byte("Package: a\n"), 0o644)
	if err := os.Symlink("/usr/bin/labnode", filepath.Join(root, "usr/bin/flannel")); err != nil {
		t.Fatal(err)
	}
	if err := writeInventory(root, nil); err != nil {
		t.Fatal(err)
	}
	if err := makeBundle(t.Context(), root, config.Trixie, debs, []string{"usr/bin/flannel", "usr/bin/kubelet", "usr/share/k8slab"}, dir); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("beside the archive there is %v, %v", left, err)
	}
	into := t.TempDir()
	if out, err := exec.Command("tar", "-C", into, "-xf", filepath.Join(dir, bundleArchive)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := map[string]string{
		"usr/bin/kubelet": "kubelet", "usr/share/k8slab/containerd/layers/1/etc/shadow": "shadow",
		bundleDir + "/install": string(installScript), bundleDir + "/debs/Packages": "Package: a\n",
		bundleDir + "/packages": strings.Join(bundlePackages(), "\n") + "\n", bundleDir + "/enabled": "containerd\nkubelet\n", bundleDir + "/distribution": "trixie\n",
		bundleDir + "/masked": strings.Join(bundleMasked, "\n") + "\n",
	}
	got := map[string]string{}
	err := filepath.WalkDir(into, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			rel, _ := filepath.Rel(into, path)
			got[rel] = read(t, path)
		}
		return err
	})
	list := strings.TrimPrefix(inventory.Path, "/")
	if text := got[list]; !strings.Contains(text, "/usr/bin/kubelet") || strings.Contains(text, "/usr/bin/bash") {
		t.Errorf("the list is %s", text)
	}
	delete(got, list)
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, got %q", err, slices.Sorted(maps.Keys(got)))
	}
	if to, err := os.Readlink(filepath.Join(into, "usr/bin/flannel")); err != nil || to != "/usr/bin/labnode" {
		t.Errorf("flannel leads to %q, %v", to, err)
	}
	if info, err := os.Stat(filepath.Join(into, BundleInstall)); err != nil || info.Mode() != 0o755 {
		t.Errorf("install: %v, %v", info, err)
	}
}

// installed is a machine on which the install script runs: its directories below a root, its programs stubs that write down how they were
// called. The script's own words stay, but for the paths.
type installed struct {
	root, log string
	paths     *strings.Replacer
}

func newInstalled(t *testing.T, failing string) installed {
	t.Helper()
	root := t.TempDir()
	m := installed{root: root, log: filepath.Join(root, "log"), paths: strings.NewReplacer("/etc/", root+"/etc/", "/var/lib/", root+"/var/lib/")}
	for _, name := range []string{"systemctl", "dpkg", "apt-get", "modprobe", "sysctl", "swapoff", "journalctl", "sync"} {
		text := "#!/bin/sh\necho " + name + " \"$@\" >>" + m.log + "\n"
		if name == failing {
			text += "exit 1\n"
		}
		write(t, filepath.Join(root, "bin", name), []byte(text), 0o755)
	}
	for name, text := range map[string]string{
		"etc/machine-id": "ffffffffffffffffffffffffffffffff\n", "etc/resolv.conf": "nameserver 192.0.2.1\n", "etc/modules-load.d/kubernetes.conf": "overlay\nvxlan\n",
		"etc/os-release": "ID=debian\nVERSION_CODENAME=trixie\n", bundleDir + "/distribution": "trixie\n",
		bundleDir + "/masked": "swap.target\na@b.service\n", bundleDir + "/enabled": "containerd\nkubelet\n", bundleDir + "/packages": "runc\ncurl\n",
	} {
		write(t, filepath.Join(root, name), []byte(text), 0o644)
	}
	return m
}

func (m installed) run() ([]byte, error) {
	cmd := exec.Command("sh", "-c", m.paths.Replace(string(installScript)), "install", "0123456789abcdef0123456789abcdef", "10.30.0.1", "abc")
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(m.root, "bin")+":"+os.Getenv("PATH"))
	return cmd.CombinedOutput()
}

func TestInstallScript(t *testing.T) {
	m := newInstalled(t, "")
	if out, err := m.run(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	log := strings.Split(strings.TrimSpace(strings.ReplaceAll(read(t, m.log), m.root, "")), "\n")
	options := "--quiet --quiet -o Dir::Etc::SourceList=/var/lib/k8slab/bundle/sources.list -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists=/var/lib/k8slab/bundle/lists" +
		" -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--path-exclude=/usr/share/man/* "
	want := []string{
		"systemctl --quiet mask swap.target a@b.service", "systemctl stop apt-daily* systemd-timesyncd*", "dpkg --configure --pending",
		"apt-get " + options + "update", "apt-get " + options + "--yes --no-install-recommends --no-upgrade --no-remove install runc curl",
		"swapoff --all", "modprobe --all overlay vxlan", "sysctl --quiet --load=/etc/sysctl.d/90-kubernetes.conf",
		"systemctl daemon-reload", "systemctl restart systemd-journald.service", "journalctl --flush", "systemctl reload ssh.service",
		"systemctl --quiet enable containerd kubelet", "systemctl restart containerd kubelet", "sync", "sync -f /var/lib/k8slab/provisioned",
	}
	if !slices.Equal(log, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(log, "\n"), strings.Join(want, "\n"))
	}
	for name, want := range map[string]string{
		"etc/machine-id": "0123456789abcdef0123456789abcdef\n", "etc/resolv.conf": "nameserver 10.30.0.1\n", BundleMark: "abc\n",
	} {
		if got := read(t, filepath.Join(m.root, name)); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if exists(filepath.Join(m.root, bundleDir)) {
		t.Error("what was unpacked is still there")
	}
}

// A resolver of the image's own keeps its file.
func TestInstallScriptLeavesTheResolver(t *testing.T) {
	m := newInstalled(t, "")
	file := filepath.Join(m.root, "etc/resolv.conf")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../run/systemd/resolve/stub-resolv.conf", file); err != nil {
		t.Fatal(err)
	}
	if out, err := m.run(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if to, err := os.Readlink(file); err != nil || to != "../run/systemd/resolve/stub-resolv.conf" {
		t.Errorf("%q, %v", to, err)
	}
}

// Packages of another release are not installed: the machine stays as it is.
func TestInstallScriptOfAnotherRelease(t *testing.T) {
	for release, found := range map[string]string{"ID=debian\nVERSION_CODENAME=bookworm\n": "bookworm", "ID=arch\n": "arch"} {
		m := newInstalled(t, "")
		write(t, filepath.Join(m.root, "etc/os-release"), []byte(release), 0o644)
		out, err := m.run()
		if want := "the image of image.base has " + found + ", and image.distribution is trixie; next: "; err == nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("%v, got %s, want %s", err, out, want)
		}
		if exists(m.log) || exists(filepath.Join(m.root, BundleMark)) {
			t.Error("the machine was changed")
		}
	}
}

// Whatever fails, the machine is not taken for a node.
func TestInstallScriptFails(t *testing.T) {
	for _, program := range []string{"systemctl", "dpkg", "apt-get", "modprobe", "sysctl", "swapoff", "journalctl", "sync"} {
		t.Run(program, func(t *testing.T) {
			m := newInstalled(t, program)
			if out, err := m.run(); err == nil || exists(filepath.Join(m.root, BundleMark)) {
				t.Errorf("it is done all the same: %s", out)
			}
		})
	}
}
