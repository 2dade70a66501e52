//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8slab/lab/command"
)

// hostPackages make a Debian tree a computer that labctl can use at once; its own mirrors are out of reach.
var hostPackages = []string{
	"systemd-sysv", "udev", "dbus", "initramfs-tools", "kmod", "iproute2", "procps", "nftables",
	"libvirt-daemon", "libvirt-daemon-driver-lxc", "libvirt-daemon-system", "libvirt-clients", "dnsmasq-base", "iptables", "e2fsprogs", "util-linux",
	"mmdebstrap", "debian-archive-keyring", "qemu-utils",
}

func cacheDir() string {
	GinkgoHelper()
	cache, err := os.UserCacheDir()
	Expect(err).NotTo(HaveOccurred())
	return filepath.Join(cache, "k8slab")
}

// makeDisk makes the computer's disk in dir: Debian, labctl, and a cache with the finished node image.
func (c computer) makeDisk(ctx context.Context, dir string) string {
	GinkgoHelper()
	build := []string{"image", "build"}
	if c.disk {
		build = append(build, "--disk")
	}
	node := strings.TrimSpace(newLab("e2e-image", 49, 1, 0).must(ctx, build...))
	debian := cachedTree(ctx, c.suite, slices.Concat(hostPackages, []string{c.kernel}, c.packages), filepath.Join(node, "root/etc/apt/sources.list"))
	tree, err := os.MkdirTemp(cacheDir(), "e2e-host.partial-") // beside what it is linked to
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, tree)
	_, err = command.Run(ctx, "cp", "--archive", "--link", debian+"/.", tree) // nothing writes to the links' files: new ones replace them
	Expect(err).NotTo(HaveOccurred())
	c.fillCache(ctx, filepath.Join(tree, "root/.cache/k8slab"), node)
	for name, text := range c.hostFiles() {
		path := filepath.Join(tree, name)
		Expect(os.RemoveAll(path)).To(Succeed())
		Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		Expect(os.WriteFile(path, []byte(text), 0o755)).To(Succeed())
	}
	makePackage(ctx, filepath.Join(tree, "root/nothing.deb"))
	disk := filepath.Join(dir, "disk.raw")
	for _, argv := range [][]string{
		{"cp", suite.labctl, filepath.Join(tree, "root")},
		{"systemctl", "--quiet", "--root", tree, "enable", "try.service", "libvirtd.socket"},
		{"systemctl", "--quiet", "--root", tree, "mask", "serial-getty@ttyS0.service", "apt-daily.timer", "apt-daily-upgrade.timer", "docker.service", "docker.socket"},
		{"sh", "-c", `cp "$1"/boot/vmlinuz-* "$2/vmlinuz" && cp "$1"/boot/initrd.img-* "$2/initrd.img"`, "-", tree, dir},
		{"truncate", "--size", "14G", disk},
		{"mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1", "-d", tree, disk},
	} {
		_, err := command.Run(ctx, argv...)
		Expect(err).NotTo(HaveOccurred())
	}
	Expect(os.RemoveAll(tree)).To(Succeed())
	return disk
}

// noPart finds what is in a cache and no part of a node image.
var noPart = regexp.MustCompile(`^(?:box|disk|e2e|labnode|node)-`)

// fillCache puts the node image into a cache. What it was made of is in it: of the parts only kubeadm's list of images is asked for again.
func (c computer) fillCache(ctx context.Context, cache, node string) {
	GinkgoHelper()
	Expect(os.MkdirAll(cache, 0o755)).To(Succeed())
	whole := []string{node}
	if c.disk {
		disks, err := filepath.Glob(filepath.Join(cacheDir(), "disk-*"))
		Expect(err).NotTo(HaveOccurred())
		whole = append(whole, slices.DeleteFunc(disks, func(d string) bool { return strings.HasSuffix(d, ".lock") || strings.Contains(d, ".partial-") })...)
	}
	_, err := command.Run(ctx, append([]string{"cp", "--archive", "--link", "--target-directory=" + cache}, whole...)...)
	Expect(err).NotTo(HaveOccurred())
	parts, err := filepath.Glob(filepath.Join(cacheDir(), "*-*"))
	Expect(err).NotTo(HaveOccurred())
	for _, part := range parts {
		name := filepath.Base(part)
		if info, err := os.Stat(part); err != nil || !info.IsDir() || strings.Contains(name, ".partial-") || noPart.MatchString(name) {
			continue
		}
		Expect(os.MkdirAll(filepath.Join(cache, name), 0o755)).To(Succeed())
		if list, err := os.ReadFile(filepath.Join(part, "images")); err == nil {
			Expect(os.WriteFile(filepath.Join(cache, name, "images"), list, 0o644)).To(Succeed())
		}
	}
}

// makePackage makes a Debian package with nothing in it, whose installation has systemd read its units again, as many do.
func makePackage(ctx context.Context, path string) {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	Expect(os.Chmod(dir, 0o755)).To(Succeed())
	for name, text := range map[string]string{
		"DEBIAN/control":  "Package: nothing\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nDescription: nothing\n",
		"DEBIAN/postinst": "#!/bin/sh\nsystemctl daemon-reload\n",
	} {
		file := filepath.Join(dir, name)
		Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(Succeed())
		Expect(os.WriteFile(file, []byte(text), 0o755)).To(Succeed())
	}
	_, err := command.Run(ctx, "dpkg-deb", "--build", "--root-owner-group", dir, path)
	Expect(err).NotTo(HaveOccurred())
}

// boot has QEMU emulate the computer until it switches itself off or says that its plug is to be pulled, and returns what was on its console.
func (c computer) boot(ctx context.Context, disk string, n int) string {
	GinkgoHelper()
	dir := filepath.Dir(disk)
	console := filepath.Join(dir, fmt.Sprintf("console%d.log", n))
	qemu := exec.CommandContext(ctx, "qemu-system-x86_64", "-machine", "q35,accel=tcg", "-cpu", "qemu64,-svm,+aes,+pclmulqdq,+ssse3,+sse4.1,+sse4.2,+popcnt,+movbe,+bmi2,+adx",
		"-smp", "2", "-m", "6144", "-nodefaults", "-no-reboot", "-display", "none", "-serial", "file:"+console,
		"-kernel", filepath.Join(dir, "vmlinuz"), "-initrd", filepath.Join(dir, "initrd.img"),
		"-append", fmt.Sprintf("root=/dev/vda rw console=ttyS0 net.ifnames=0 k8slab.boot=%d %s %s", n, emulatedCmdline, c.cmdline),
		"-drive", "file="+disk+",if=virtio,format=raw,cache=unsafe")
	qemu.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	read := func() string {
		text, _ := os.ReadFile(console) // without one there is QEMU's own word
		return strings.ReplaceAll(string(text), "\r", "")
	}
	pulled := make(chan bool)
	go func() {
		defer GinkgoRecover()
		for {
			select {
			case <-pulled:
				return
			case <-time.After(time.Second):
				if strings.Contains(read(), "k8slab: pull the plug\n") {
					_ = qemu.Process.Kill()
				}
			}
		}
	}()
	out, err := qemu.CombinedOutput()
	close(pulled)
	seen := read()
	if !strings.Contains(seen, "k8slab: pull the plug\n") {
		Expect(err).NotTo(HaveOccurred(), "%s\n%s", out, tail(seen))
	}
	return seen
}

// cachedTree is a Debian tree with the packages, kept in the cache.
func cachedTree(ctx context.Context, release string, packages []string, sources string) string {
	GinkgoHelper()
	dir := filepath.Join(cacheDir(), fmt.Sprintf("e2e-%s-%s", release, hashed(packages)))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	part, err := os.MkdirTemp(cacheDir(), filepath.Base(dir)+".partial-")
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = os.RemoveAll(part) }()
	Expect(os.Chmod(part, 0o755)).To(Succeed())
	Expect(debianTree(ctx, release, part, packages, sources)).To(Succeed())
	Expect(os.Rename(part, dir)).To(Succeed())
	return dir
}
