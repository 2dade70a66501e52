package image

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8slab/lab/command"
	"k8slab/lab/event"
)

// Disk is the image's form for virtual machines.
type Disk struct {
	Base    string // qcow2 with the root filesystem, the backing file of each machine's overlay
	Kernel  string
	Initrd  string
	Cmdline string // what the kernel needs to find the root
	ID      string // another one for each content
}

// BuildDisk returns the image's disk, after making it from the root directory if the cache does not have it.
func (i Image) BuildDisk(ctx context.Context, events *event.Stream) (Disk, error) {
	c := cache{dir: filepath.Dir(i.Dir), events: events}
	dir, err := c.get(ctx, diskKind, []string{"disk 1", filepath.Base(i.Dir)}, func(dir string, step *event.Step) error {
		return makeDisk(ctx, i.Root(), dir, step)
	})
	return Disk{
		Base: filepath.Join(dir, "root.qcow2"), Kernel: filepath.Join(dir, "vmlinuz"), Initrd: filepath.Join(dir, "initrd.img"),
		Cmdline: "root=/dev/vda rootfstype=ext4 rw console=ttyS0 net.ifnames=0",
		ID:      strings.TrimPrefix(filepath.Base(dir), diskKind+"-"),
	}, err
}

// FileID is an ID, as a Disk has it, of a file of the user's: another one when it was changed.
func FileID(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	return hash("file", path, fmt.Sprint(info.Size()), info.ModTime().UTC().String()), nil
}

const diskKind = "disk"

func makeDisk(ctx context.Context, root, dir string, step *event.Step) error {
	for pattern, name := range map[string]string{"vmlinuz-*": "vmlinuz", "initrd.img-*": "initrd.img"} {
		found, err := filepath.Glob(filepath.Join(root, "boot", pattern))
		if err != nil {
			return err
		}
		if len(found) != 1 {
			return fmt.Errorf("the Debian tree has %d kernels (boot/%s), expected one", len(found), pattern)
		}
		if _, err := command.Run(ctx, "cp", found[0], filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	used, err := size(root)
	if err != nil {
		return err
	}
	raw, disk := filepath.Join(dir, "root.raw"), filepath.Join(dir, "root.qcow2")
	step.Progress("writing the root filesystem")
	// A quarter more than the files for the filesystem's own structures; the machine grows it to its disk at boot.
	steps := [][]string{
		{"truncate", "-s", fmt.Sprint(used + used/4), raw},
		{"mkfs.ext4", "-q", "-F", "-L", "k8slab", "-E", "lazy_itable_init=1", "-d", root, raw},
		{"qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, disk},
	}
	for _, argv := range steps {
		if _, err := command.Run(ctx, argv...); err != nil {
			return err
		}
	}
	return os.Remove(raw)
}
