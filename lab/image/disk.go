package image

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// Box is the image's form for vagrant with its libvirt provider.
type Box struct {
	Name    string `json:"name"` // another one for each image, so that vagrant never takes an old one
	Version string `json:"version"`
	URL     string `json:"url"` // of the catalog by which vagrant finds the box
}

// Dir is where in the cache the box is.
func (b Box) Dir() string { return filepath.Dir(strings.TrimPrefix(b.URL, "file://")) }

// BuildBox returns the box, after making it from the disk if the cache does not have it. Version is that of Kubernetes in the image.
func (i Image) BuildBox(ctx context.Context, disk Disk, version string, events *event.Stream) (Box, error) {
	c := cache{dir: filepath.Dir(i.Dir), events: events}
	box := Box{Name: "k8slab/" + i.Hash, Version: strings.TrimPrefix(version, "v")}
	inputs := []string{"box 1", filepath.Base(filepath.Dir(disk.Base)), box.Name, box.Version}
	path := c.path("box", inputs)
	box.URL = "file://" + filepath.Join(path, "catalog.json")
	_, err := c.get(ctx, "box", inputs, func(dir string, step *event.Step) error {
		step.Progress("packing the disk")
		return makeBox(ctx, box, disk.Base, dir, path)
	})
	return box, err
}

// makeBox makes in dir what will be at path.
func makeBox(ctx context.Context, box Box, disk, dir, path string) error {
	text, err := command.Run(ctx, "qemu-img", "info", "--output=json", disk)
	if err != nil {
		return err
	}
	var info struct {
		Size int64 `json:"virtual-size"`
	}
	if err := json.Unmarshal([]byte(text), &info); err != nil {
		return err
	}
	const gib = 1 << 30
	archive := map[string]any{"provider": "libvirt", "format": "qcow2", "virtual_size": (info.Size + gib - 1) / gib}
	catalog := map[string]any{"name": box.Name, "versions": []any{map[string]any{
		"version": box.Version, "providers": []any{map[string]string{"name": "libvirt", "url": "file://" + filepath.Join(path, "node.box")}},
	}}}
	for name, v := range map[string]any{"metadata.json": archive, "catalog.json": catalog} {
		data, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	link := filepath.Join(dir, "box.img")
	if err := os.Symlink(disk, link); err != nil { // no hard link: the disk may be root's, in a cache that root filled for a user
		return err
	}
	// Not compressed: it never travels.
	if _, err := command.Run(ctx, "tar", "-C", dir, "--dereference", "-cf", filepath.Join(dir, "node.box"), "metadata.json", "box.img"); err != nil {
		return err
	}
	return os.Remove(link)
}

// qcow2Header is what an image file begins with, in the words of QEMU's docs/interop/qcow2.txt. Version 2 ends before Incompatible.
type qcow2Header struct {
	Magic         [4]byte
	Version       uint32
	BackingOffset uint64
	BackingLength uint32
	ClusterBits   uint32
	Size          uint64 // of the disk, in bytes
	CryptMethod   uint32
	_             [36]byte
	Incompatible  uint64
}

const (
	qcow2Corrupt      = 1 << 1
	qcow2ExternalData = 1 << 2
)

// BaseSize returns how many bytes the disk in a stock image has, and checks that machines can have overlays on it: a qcow2 file that is
// all there is of the image. It reads the header itself, because QEMU's tools may not be installed yet.
func BaseSize(path string) (uint64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("image.base: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("image.base: %w", err)
	}
	if !info.Mode().IsRegular() {
		return 0, fmt.Errorf("image.base: %s is not a file", path)
	}
	var h qcow2Header
	if err := binary.Read(f, binary.BigEndian, &h); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, fmt.Errorf("image.base: %w", err)
	}
	if why := h.problem(); why != "" {
		return 0, fmt.Errorf("image.base: %s %s; an image that can be used is made by: qemu-img convert -O qcow2 %[1]s NEW", path, why)
	}
	return h.Size, nil
}

// problem says why machines cannot have overlays on the image, "" when they can.
func (h qcow2Header) problem() string {
	switch {
	case string(h.Magic[:]) != "QFI\xfb" || h.Version < 2 || h.Size == 0:
		return "is not a qcow2 image"
	case h.BackingOffset != 0:
		return "has a backing file, and the lab takes one file"
	case h.CryptMethod != 0:
		return "is encrypted"
	case h.Version > 2 && h.Incompatible&qcow2ExternalData != 0:
		return "has its data in another file, and the lab takes one file"
	case h.Version > 2 && h.Incompatible&qcow2Corrupt != 0:
		return "is marked as corrupt"
	}
	return ""
}
