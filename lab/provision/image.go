package provision

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8slab/lab/host"
	"k8slab/lab/image"
	"k8slab/lab/machine"
	"k8slab/lab/session"
)

// Maker makes the machines of an opened lab.
type Maker struct {
	*session.Session

	bundling sync.Mutex
	bundled  image.Bundle
}

// For returns the Maker of the session's machines.
func For(s *session.Session) *Maker { return &Maker{Session: s} }

// Image builds what machines boot from, and uploads it to libvirt's storage pool if they need it there.
func (m *Maker) Image(ctx context.Context) (machine.Boot, error) {
	if m.Libvirt == nil { // machines that exist already have an image
		return machine.Boot{}, nil
	}
	boot, err := m.bootFiles(ctx)
	if err != nil || m.URI == host.Containers {
		return boot, err
	}
	step := m.Events.Start("", "storage pool", 0)
	boot, err = m.Libvirt.Publish(ctx, boot, func(done, size int64) { step.Progress("uploading: %d of %d MiB", done>>20, size>>20) })
	return boot, step.End(err)
}

func (m *Maker) bootFiles(ctx context.Context) (machine.Boot, error) {
	if m.URI == host.Containers {
		img, err := buildImage(ctx, m.Session)
		return machine.Boot{Root: img.Root()}, err
	}
	if base := m.Cluster.Image.Base; base != "" {
		if _, err := m.bundle(ctx); err != nil {
			return machine.Boot{}, err
		}
		id, err := image.FileID(base)
		return machine.Boot{Base: base, ID: id}, err
	}
	_, disk, err := BuildDisk(ctx, m.Session)
	return bootFrom(disk), err
}

func buildImage(ctx context.Context, s *session.Session) (image.Image, error) {
	k8s := s.Cluster.Kubernetes
	program, err := s.LabnodeBinary()
	if err != nil {
		return image.Image{}, err
	}
	img, err := image.Build(ctx, image.Spec{KubernetesVersion: k8s.Version, KubernetesSource: k8s.Source, Labnode: program}, s.Events)
	if err != nil {
		return img, err
	}
	return img, s.UsesImage("image", img.Dir)
}

// BuildDisk builds the node image and the disk of it.
func BuildDisk(ctx context.Context, s *session.Session) (image.Image, image.Disk, error) {
	img, err := buildImage(ctx, s)
	if err != nil {
		return img, image.Disk{}, err
	}
	disk, err := img.BuildDisk(ctx, s.Events)
	if err == nil {
		err = s.UsesImage("disk", filepath.Dir(disk.Base))
	}
	return img, disk, err
}

func bootFrom(disk image.Disk) machine.Boot {
	return machine.Boot{Base: disk.Base, Kernel: disk.Kernel, Initrd: disk.Initrd, Cmdline: disk.Cmdline, ID: disk.ID}
}

// UploadedImages lists the images that were uploaded to this computer's libvirt.
func UploadedImages(ctx context.Context) ([]image.Entry, error) {
	return uploaded(func(socket string) ([]machine.Base, error) { return machine.Bases(ctx, socket) })
}

// PruneUploadedImages removes images that no machine uses and that were uploaded before the time.
func PruneUploadedImages(ctx context.Context, before time.Time) ([]image.Entry, error) {
	return uploaded(func(socket string) ([]machine.Base, error) { return machine.PruneBases(ctx, socket, before) })
}

func uploaded(get func(storageSocket string) ([]machine.Base, error)) ([]image.Entry, error) {
	h, err := host.Computers(host.VirtualMachines)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	bases, err := get(h.StorageSocket())
	var entries []image.Entry
	for _, b := range bases {
		entries = append(entries, image.Entry{Name: "pool " + b.Pool + ": " + b.Name, Size: b.Size, Used: b.Last})
	}
	return entries, err
}
