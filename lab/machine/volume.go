package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/digitalocean/go-libvirt"
	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"

	"k8slab/lab/command"
)

// Kinds of volumes that a virtual machine has in the storage pool.
const (
	diskVolume    = "qcow2"   // an overlay on what it boots from
	seedVolume    = "seed"    // its own files, read at boot
	consoleVolume = "console" // what it wrote to its console
	memoryVolume  = "memory-" // of a snapshot, whose name follows
	vagrantSeed   = "seed.qcow2"
)

// extraVolume is the kind of an empty disk's volume.
func extraVolume(i int) string { return fmt.Sprintf("disk%d.qcow2", i) }

// volumePrefix begins the names of the lab's own volumes.
func (l *Lab) volumePrefix() string { return "k8slab-" + l.cfg.ID[:8] + "-" }

// volumeName is the volume of the kind. Names of nodes have no dot.
func (l *Lab) volumeName(node, kind string) string { return l.volumePrefix() + node + "." + kind }

// makeVolumes makes the volumes of a virtual machine. An existing disk stays: it may have an etcd member's data.
func (l *Lab) makeVolumes(ctx context.Context, spec Spec) error {
	seed, err := seedOf(ctx, spec)
	if err != nil {
		return err
	}
	return l.inPool(ctx, "volumes of "+spec.Node, func(p pool) error {
		volumes := []volume{
			{name: l.volumeName(spec.Node, diskVolume), format: "qcow2", size: uint64(spec.Disk) << 30, backing: spec.Boot.Base},
			{name: l.volumeName(spec.Node, consoleVolume), format: "raw"},
		}
		for i, size := range spec.Disks {
			volumes = append(volumes, volume{name: l.volumeName(spec.Node, extraVolume(i)), format: "qcow2", size: uint64(size) << 30})
		}
		for _, vol := range volumes {
			if _, err := p.ensure(vol); err != nil {
				return fmt.Errorf("%s: %w", vol.name, err)
			}
		}
		return p.fill(l.volumeName(spec.Node, seedVolume), bytes.NewReader(seed), int64(len(seed)))
	})
}

// volumePath is the path of the node's volume of that kind.
func (l *Lab) volumePath(ctx context.Context, node, kind string) (path string, err error) {
	name := l.volumeName(node, kind)
	err = l.inPool(ctx, "look up "+name, func(p pool) (err error) {
		path, err = p.path(name)
		return err
	})
	return path, err
}

// Console is the end of what a virtual machine wrote to its console, up to that many bytes; a container has none.
func (l *Lab) Console(ctx context.Context, node string, most uint64) (string, error) {
	var text bytes.Buffer
	err := l.withPool(ctx, "console of "+node, func(p pool) error {
		vol, err := p.libvirt.StorageVolLookupByName(p.it, l.volumeName(node, consoleVolume))
		if err != nil {
			return err
		}
		_, size, _, err := p.libvirt.StorageVolGetInfo(vol)
		if err != nil || size == 0 {
			return err
		}
		return p.libvirt.StorageVolDownload(vol, &text, size-min(size, most), 0, 0)
	})
	if is(err, libvirt.ErrNoStorageVol) {
		return "", nil
	}
	return text.String(), err
}

// seedOf is the content of the disk from which a virtual machine reads its own files: a tar archive, or for cloud-init a NoCloud disk.
func seedOf(ctx context.Context, spec Spec) ([]byte, error) {
	if !spec.Boot.stock() {
		return tarOf(ctx, spec.Seed)
	}
	dir, err := os.MkdirTemp("", "k8slab-") // 0700
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "seed.iso")
	if err := writeNoCloud(path, spec.Seed); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// tarOf archives the directory, padded to whole MiB because it becomes a disk.
func tarOf(ctx context.Context, dir string) ([]byte, error) {
	var out bytes.Buffer
	_, err := command.Command{Argv: []string{"tar", "-C", dir, "--owner=0", "--group=0", "--blocking-factor=2048", "-cf", "-", "."}, Stdout: &out}.Run(ctx)
	return out.Bytes(), err
}

// deleteNodesVolumes deletes the node's volumes, whoever made them.
func (l *Lab) deleteNodesVolumes(ctx context.Context, node string) error {
	return l.withPool(ctx, "delete volumes of "+node, func(p pool) error {
		return p.delete(func(name string) bool {
			return strings.HasPrefix(name, l.volumeName(node, "")) || name == l.domainName(node)+vagrantDisk
		})
	})
}

// DeleteAllDisks removes the disks of every node, of absent machines too, and the storage pool if the lab was the last to need it.
func (l *Lab) DeleteAllDisks(ctx context.Context) error {
	err := l.withPool(ctx, "delete the lab's volumes", func(p pool) error {
		err := p.delete(func(name string) bool { return strings.HasPrefix(name, l.volumePrefix()) })
		if err != nil {
			return err
		}
		return p.removeIfEmpty()
	})
	if err != nil {
		return err
	}
	err = os.RemoveAll(l.loopDir())
	_ = os.Remove(filepath.Dir(l.loopDir())) // unless another lab has names there
	return errors.Join(err, os.RemoveAll(filepath.Clean(l.cfg.Dir)))
}

// writeNoCloud writes the files of the directory into a new disk at path, readable by the user alone, as cloud-init's NoCloud reads them:
// ISO 9660 with the label cidata. Rock Ridge keeps their names, which have characters that those of ISO 9660 cannot have.
func writeNoCloud(path, dir string) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	stage, err := os.MkdirTemp(filepath.Dir(path), "nocloud-") // 0700: the library removes it; until then it has the files, which include keys
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(stage)) }()
	if err := os.CopyFS(stage, os.DirFS(dir)); err != nil {
		return err
	}
	iso, err := iso9660.Create(file.New(f, false), 0, 0, 0, stage)
	if err != nil {
		return err
	}
	return iso.Finalize(iso9660.FinalizeOptions{RockRidge: true, VolumeIdentifier: "cidata"})
}
