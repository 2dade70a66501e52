//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8slab/lab/command"
)

// A computer is emulated on which labctl makes a lab of containers: one with cgroup v2, systemd and libvirt's own daemon, as Debian has them.
var _ = Describe("a computer with cgroup v2", Label("hosts", "Slow"), Serial, func() {
	It("carries a lab of containers", func(ctx SpecContext) {
		dir, err := os.MkdirTemp(cacheDir(), "e2e-host.partial-")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(os.RemoveAll, dir)
		disk := makeHostDisk(ctx, dir)
		begun := time.Now()
		console := bootHost(ctx, dir, disk)
		AddReportEntry("boot, up, status, down and off again", time.Since(begun).Round(time.Second).String())
		AddReportEntry("console", console, ReportEntryVisibilityFailureOrVerbose)
		for _, want := range []string{
			"k8slab: cgroups cgroup2fs", "k8slab: libvirtd active", "k8slab: up: exit status 0", "\nhealthy", "k8slab: status: exit status 0",
			"k8slab: pods of cp1 Running", "k8slab: down: exit status 0", "k8slab: left: \n",
		} {
			Expect(console).To(ContainSubstring(want))
		}
	}, SpecTimeout(40*time.Minute))
})

// hostPackages make a Debian tree a computer that labctl can use at once; its own mirrors are out of reach.
var hostPackages = []string{
	"systemd-sysv", "udev", "dbus", "linux-image-cloud-amd64", "initramfs-tools", "kmod", "iproute2",
	"libvirt-daemon", "libvirt-daemon-driver-lxc", "libvirt-daemon-system", "libvirt-clients", "dnsmasq-base", "iptables", "e2fsprogs", "util-linux",
	"mmdebstrap", "debian-archive-keyring", "gcc", "libc6-dev", "qemu-utils",
}

// hostFiles are its own. The unit tries the lab when the computer has booted, and switches it off.
var hostFiles = map[string]string{
	"etc/fstab":    "/dev/vda / ext4 rw 0 1\n",
	"etc/hostname": "host\n",
	"root/cluster.yaml": `name: small
nodes:
  - {name: cp1, role: control-plane, ip: 10.30.0.11}
`,
	"root/try": `#!/bin/sh
say() { echo "k8slab: $*"; }
lab() { /root/labctl -c /root/cluster.yaml "$@"; status=$?; say "$1: exit status $status"; return $status; }
say "cgroups $(stat --file-system --format %T /sys/fs/cgroup)"
virsh --quiet --connect lxc:///system list >/dev/null
say "libvirtd $(systemctl is-active libvirtd)"
if lab up; then
    lab status
    say "pods of cp1 $(/root/labctl -c /root/cluster.yaml kubectl -- get pods -A -o 'jsonpath={.items[*].status.phase}' | tr ' ' '\n' | sort -u)"
else
    /root/labctl -c /root/cluster.yaml diagnose
fi
lab down
say "left: $(virsh --quiet --connect lxc:///system list --all --name)$(find /sys/fs/cgroup -name '*k8slab*')$(ip netns)"
systemctl poweroff
`,
	"etc/systemd/system/try.service": `[Unit]
After=multi-user.target
[Service]
Environment=HOME=/root
ExecStart=sh -c '/root/try 2>&1 | cat >/dev/ttyS0'
[Install]
WantedBy=multi-user.target
`,
}

func cacheDir() string {
	GinkgoHelper()
	cache, err := os.UserCacheDir()
	Expect(err).NotTo(HaveOccurred())
	return filepath.Join(cache, "k8slab")
}

// makeHostDisk makes the computer's disk in dir: Debian, labctl, and a cache with the finished node image.
func makeHostDisk(ctx context.Context, dir string) string {
	GinkgoHelper()
	node := strings.TrimSpace(newLab("e2e-image", 49, 1, 0).must(ctx, "image", "build"))
	debian := cachedTree(ctx, "host", hostPackages, filepath.Join(node, "root/etc/apt/sources.list"))
	tree, disk := filepath.Join(dir, "tree"), filepath.Join(dir, "disk.raw")
	_, err := command.Run(ctx, "cp", "--archive", "--link", debian, tree) // nothing writes to the links' files: new ones replace them
	Expect(err).NotTo(HaveOccurred())
	cache := filepath.Join(tree, "root/.cache/k8slab")
	Expect(os.MkdirAll(cache, 0o755)).To(Succeed())
	for _, argv := range [][]string{
		{"cp", "--archive", "--link", node, cache},
		{"cp", suite.labctl, filepath.Join(tree, "root")},
	} {
		_, err := command.Run(ctx, argv...)
		Expect(err).NotTo(HaveOccurred())
	}
	// What the node image was made of is in it. Of the parts only kubeadm's list of images is asked for again.
	parts, err := filepath.Glob(filepath.Join(cacheDir(), "*-*"))
	Expect(err).NotTo(HaveOccurred())
	for _, part := range parts {
		name := filepath.Base(part)
		if info, err := os.Stat(part); err != nil || !info.IsDir() || strings.Contains(name, ".partial-") {
			continue
		}
		Expect(os.MkdirAll(filepath.Join(cache, name), 0o755)).To(Succeed())
		if list, err := os.ReadFile(filepath.Join(part, "images")); err == nil {
			Expect(os.WriteFile(filepath.Join(cache, name, "images"), list, 0o644)).To(Succeed())
		}
	}
	for name, text := range hostFiles {
		path := filepath.Join(tree, name)
		Expect(os.RemoveAll(path)).To(Succeed())
		Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		Expect(os.WriteFile(path, []byte(text), 0o755)).To(Succeed())
	}
	for _, argv := range [][]string{
		{"systemctl", "--quiet", "--root", tree, "enable", "try.service", "libvirtd.socket"},
		{"systemctl", "--quiet", "--root", tree, "mask", "serial-getty@ttyS0.service", "apt-daily.timer", "apt-daily-upgrade.timer"},
		{"sh", "-c", `cp "$1"/boot/vmlinuz-* "$2/vmlinuz" && cp "$1"/boot/initrd.img-* "$2/initrd.img"`, "-", tree, dir},
		{"truncate", "--size", "10G", disk},
		{"mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1", "-d", tree, disk},
		{"rm", "-rf", tree},
	} {
		_, err := command.Run(ctx, argv...)
		Expect(err).NotTo(HaveOccurred())
	}
	return disk
}

// bootHost has QEMU emulate the computer until it switches itself off, and returns what was on its console.
func bootHost(ctx context.Context, dir, disk string) string {
	GinkgoHelper()
	console := filepath.Join(dir, "console.log")
	qemu := exec.CommandContext(ctx, "qemu-system-x86_64", "-machine", "q35,accel=tcg", "-cpu", "qemu64,-svm,+aes,+pclmulqdq,+ssse3,+sse4.1,+sse4.2,+popcnt,+movbe,+bmi1,+bmi2,+adx",
		"-smp", "2", "-m", "6144", "-nodefaults", "-no-reboot", "-display", "none", "-serial", "file:"+console,
		"-kernel", filepath.Join(dir, "vmlinuz"), "-initrd", filepath.Join(dir, "initrd.img"),
		"-append", "root=/dev/vda rw console=ttyS0 net.ifnames=0 "+emulatedCmdline,
		"-drive", "file="+disk+",if=virtio,format=raw,cache=unsafe")
	qemu.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := qemu.CombinedOutput()
	text, _ := os.ReadFile(console) // without one there is QEMU's own word
	seen := strings.ReplaceAll(string(text), "\r", "")
	Expect(err).NotTo(HaveOccurred(), "%s\n%s", out, tail(seen))
	return seen
}

// cachedTree is a Debian tree with the packages, kept in the cache.
func cachedTree(ctx context.Context, name string, packages []string, sources string) string {
	GinkgoHelper()
	dir := filepath.Join(cacheDir(), fmt.Sprintf("e2e-%s-%s", name, hashed(packages)))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	part, err := os.MkdirTemp(cacheDir(), filepath.Base(dir)+".partial-")
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = os.RemoveAll(part) }()
	Expect(os.Chmod(part, 0o755)).To(Succeed())
	Expect(debianTree(ctx, part, packages, sources)).To(Succeed())
	Expect(os.Rename(part, dir)).To(Succeed())
	return dir
}
