//go:build e2e

package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8slab/config"
	"k8slab/lab/command"
)

// stockPackages make a Debian tree what Debian's own cloud images are: cloud-init, netplan over systemd-networkd, a resolver.
var stockPackages = []string{
	"systemd-sysv", "udev", "dbus", "linux-image-cloud-amd64", "initramfs-tools", "openssh-server", "cloud-init", "cloud-guest-utils",
	"netplan.io", "systemd-resolved", "systemd-timesyncd", "iproute2", "sudo", "e2fsprogs", "grub-pc-bin", "grub-common",
}

// stockFiles are what the packages leave to whoever makes an image of them.
var stockFiles = map[string]string{
	"etc/fstab":      "LABEL=root / ext4 rw,discard,errors=remount-ro 0 1\n",
	"etc/machine-id": "",
	"boot/early.cfg": stockGrub,
}

// emulatedCmdline is what an emulated machine's kernel has to be told, as lab/machine tells its own: how to read the time, and more.
const emulatedCmdline = "tsc=reliable clocksource=tsc highres=off mitigations=off"

// stockGrub is part of GRUB's core, so that it needs nothing but the kernel from the disk. Nobody else can tell that kernel anything before
// the first boot; what emulated machines need does no harm on KVM.
const stockGrub = `set root=(hd0,msdos1)
linux /vmlinuz root=LABEL=root ro console=ttyS0 ` + emulatedCmdline + `
initrd /initrd.img
boot
`

// stockImage is a Debian cloud image of the suite's own, kept in the cache.
func stockImage(ctx context.Context) string {
	GinkgoHelper()
	dir := filepath.Join(cacheDir(), "e2e-stock-"+hashed(stockPackages, stockFiles))
	image := filepath.Join(dir, "stock.qcow2")
	if _, err := os.Stat(image); err == nil {
		return image
	}
	// The mirrors are those that the node image came from.
	node := strings.TrimSpace(newLab("e2e-image", 49, 1, 0).must(ctx, "image", "build"))
	part, err := os.MkdirTemp(cacheDir(), filepath.Base(dir)+".partial-")
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = os.RemoveAll(part) }()
	Expect(makeStockImage(ctx, part, filepath.Join(node, "root/etc/apt/sources.list"))).To(Succeed())
	Expect(os.Rename(part, dir)).To(Succeed())
	return image
}

// hashed names what is made of the inputs.
func hashed(inputs ...any) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(fmt.Sprint(inputs...))))[:16]
}

// debianTree makes a tree of the release of Debian with the packages, without their texts for people, from the mirrors in a file for either release.
func debianTree(ctx context.Context, release, tree string, packages []string, sources string) error {
	text, err := os.ReadFile(sources)
	if err != nil {
		return err
	}
	_, err = command.Command{
		Argv: []string{"mmdebstrap", "--mode=root", "--variant=minbase", "--include=" + strings.Join(packages, ","),
			"--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
			release, tree, "-"},
		Stdin: strings.NewReader(strings.NewReplacer(config.Bookworm, release, config.Trixie, release).Replace(string(text))),
	}.Run(ctx)
	return err
}

// makeStockImage makes stock.qcow2 in dir: a partition table, GRUB before the first partition, and Debian in that.
func makeStockImage(ctx context.Context, dir, sources string) error {
	tree, root, raw := filepath.Join(dir, "tree"), filepath.Join(dir, "root.ext4"), filepath.Join(dir, "stock.raw")
	if err := makeStockTree(ctx, tree, sources); err != nil {
		return err
	}
	boot, err := os.ReadFile(filepath.Join(tree, "usr/lib/grub/i386-pc/boot.img"))
	if err != nil {
		return err
	}
	core, err := os.ReadFile(filepath.Join(tree, "boot/core.img"))
	if err != nil {
		return err
	}
	used, err := treeSize(ctx, tree)
	if err != nil {
		return err
	}
	size := (used + used/2) >> 20 << 20 // the machine grows it to its disk
	start, err := bootTrack(boot, core, size)
	if err != nil {
		return err
	}
	if err := os.WriteFile(raw, start, 0o644); err != nil {
		return err
	}
	for _, argv := range [][]string{
		{"truncate", "--size", fmt.Sprint(size), root},
		{"mkfs.ext4", "-q", "-F", "-L", "root", "-d", tree, root},
		{"dd", "if=" + root, "of=" + raw, "bs=1M", "seek=1", "conv=sparse,notrunc", "status=none"},
		{"truncate", "--size", fmt.Sprint(len(start) + int(size)), raw},
		{"qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, filepath.Join(dir, "stock.qcow2")},
		{"rm", "-rf", tree, root, raw},
	} {
		if _, err := command.Run(ctx, argv...); err != nil {
			return err
		}
	}
	return nil
}

func makeStockTree(ctx context.Context, tree, sources string) error {
	if err := debianTree(ctx, "bookworm", tree, stockPackages, sources); err != nil {
		return err
	}
	for name, text := range stockFiles {
		if err := os.WriteFile(filepath.Join(tree, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	for _, argv := range [][]string{
		{"systemctl", "--quiet", "enable", "systemd-networkd", "systemd-resolved"},
		{"grub-mkimage", "--format", "i386-pc", "--output", "/boot/core.img", "--config", "/boot/early.cfg", "--prefix", "/",
			"biosdisk", "part_msdos", "ext2", "linux"},
		{"sh", "-c", "rm -f /etc/ssh/ssh_host_* /etc/hostname"},
	} {
		if _, err := command.Run(ctx, append([]string{"chroot", tree}, argv...)...); err != nil {
			return err
		}
	}
	return nil
}

// bootTrack is the first MiB of a disk that boots a partition of the given size after it: GRUB's boot sector with the partition table, and
// GRUB's core behind it, where the boot sector looks for it.
func bootTrack(boot, core []byte, size int64) ([]byte, error) {
	const sector, length = 512, 1 << 20
	if len(boot) != sector || len(core) > length-sector {
		return nil, fmt.Errorf("GRUB's boot sector has %d bytes and its core %d", len(boot), len(core))
	}
	start := make([]byte, length)
	copy(start, boot[:440])
	copy(start[sector:], core)
	entry := start[446:462]
	entry[0], entry[4] = 0x80, 0x83 // active, Linux
	copy(entry[1:4], []byte{0xfe, 0xff, 0xff})
	copy(entry[5:8], []byte{0xfe, 0xff, 0xff})
	binary.LittleEndian.PutUint32(entry[8:], length/sector)
	binary.LittleEndian.PutUint32(entry[12:], uint32(size/sector))
	copy(start[510:], []byte{0x55, 0xaa})
	return start, nil
}

// treeSize is the disk space of a tree, in bytes.
func treeSize(ctx context.Context, dir string) (int64, error) {
	out, err := command.Run(ctx, "du", "--summarize", "--block-size=1", dir)
	if err != nil {
		return 0, err
	}
	size, _, _ := strings.Cut(out, "\t")
	return strconv.ParseInt(size, 10, 64)
}
