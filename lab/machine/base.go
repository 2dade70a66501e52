package machine

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/digitalocean/go-libvirt"
	"github.com/gofrs/flock"
	"libvirt.org/go/libvirtxml"
)

// basePrefix begins the names of the volumes that machines of several labs boot from.
const basePrefix = "k8slab-base-"

// boxPrefix begins the name of the volume that vagrant makes of the lab's box, and leaves.
const boxPrefix = "k8slab-VAGRANTSLASH-"

// complete ends the name of an empty volume which marks another as completely uploaded: libvirt cannot rename a volume.
const complete = ".complete"

// Publish uploads what virtual machines boot from to the storage pool, once for all labs, and returns the paths there.
func (l *Lab) Publish(ctx context.Context, b Boot, progress func(done, size int64)) (Boot, error) {
	if l.container() {
		return b, nil
	}
	if err := l.EnsurePool(ctx); err != nil {
		return b, err
	}
	for kind, path := range map[string]*string{"qcow2": &b.Base, "vmlinuz": &b.Kernel, "initrd": &b.Initrd} {
		if *path == "" {
			continue
		}
		var err error
		if *path, err = l.publish(ctx, *path, basePrefix+b.ID+"."+kind, progress); err != nil {
			return b, fmt.Errorf("upload %s to storage pool %s: %w", kind, l.cfg.Pool, err)
		}
	}
	return b, nil
}

// publish uploads the file and returns its path in the pool. It locks the file, so that a second labctl waits instead of uploading too.
func (l *Lab) publish(ctx context.Context, file, name string, progress func(done, size int64)) (path string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	lock := flock.New(file, flock.SetFlag(os.O_RDONLY))
	if _, err := lock.TryLockContext(ctx, 200*time.Millisecond); err != nil {
		return "", err
	}
	defer func() { _ = lock.Close() }()
	err = l.inPool(ctx, "upload "+name, func(p pool) error {
		if _, err := p.path(name + complete); !is(err, libvirt.ErrNoStorageVol) {
			if err == nil {
				path, err = p.path(name)
			}
			return err
		}
		// The volume is left of an interrupted upload.
		if err := p.delete(func(volume string) bool { return volume == name }); err != nil {
			return err
		}
		if err := p.fill(name, &counting{f: f, size: info.Size(), tell: progress}, info.Size()); err != nil {
			return err
		}
		if path, err = p.path(name); err != nil {
			return err
		}
		_, err := p.ensure(volume{name: name + complete, format: "raw"})
		return err
	})
	return path, err
}

// counting shows how much of a file was read.
type counting struct {
	f          *os.File
	done, size int64
	tell       func(done, size int64)
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.f.Read(p)
	c.done += int64(n)
	if n > 0 {
		c.tell(c.done, c.size)
	}
	return n, err
}

// Base is a disk that machines boot from, with its kernel.
type Base struct {
	Pool  string
	Name  string    // without the suffix for its kind
	Size  int64     // bytes on disk
	Last  time.Time // when it was uploaded
	InUse bool      // a machine's disk is an overlay on it
}

// Bases lists the base disks in all storage pools of the daemon.
func Bases(ctx context.Context, storageSocket string) (bases []Base, err error) {
	err = eachPool(ctx, storageSocket, func(p pool) error {
		found, err := p.bases()
		bases = append(bases, found...)
		return err
	})
	return bases, err
}

// PruneBases deletes base disks that no machine uses and that were uploaded before the time. Then it removes pools that labs made and that
// are empty.
func PruneBases(ctx context.Context, storageSocket string, before time.Time) (removed []Base, err error) {
	err = eachPool(ctx, storageSocket, func(p pool) error {
		found, err := p.bases()
		if err != nil {
			return err
		}
		gone := slices.DeleteFunc(found, func(b Base) bool { return b.InUse || b.Last.After(before) })
		err = p.delete(func(name string) bool {
			return slices.ContainsFunc(gone, func(b Base) bool { return baseOf(name) == b.Name })
		})
		if err != nil {
			return err
		}
		removed = append(removed, gone...)
		return p.removeIfEmpty()
	})
	return removed, err
}

func eachPool(ctx context.Context, storageSocket string, do func(pool) error) error {
	c := newConn(storageSocket, storageURI)
	defer c.close()
	return c.call(ctx, "storage pools", func(v *libvirt.Libvirt) error {
		pools, _, err := v.ConnectListAllStoragePools(1, libvirt.ConnectListStoragePoolsActive)
		if err != nil {
			return err
		}
		for _, it := range pools {
			if err := do(pool{v, it, func(string) {}}); err != nil {
				return fmt.Errorf("%s: %w", it.Name, err)
			}
		}
		return nil
	})
}

func (p pool) bases() ([]Base, error) {
	volumes, _, err := p.libvirt.StoragePoolListAllVolumes(p.it, 1, 0)
	if err != nil {
		return nil, err
	}
	found, used := map[string]*Base{}, map[string]bool{}
	for _, vol := range volumes {
		text, err := p.libvirt.StorageVolGetXMLDesc(vol, 0)
		if is(err, libvirt.ErrNoStorageVol) { // gone since it was listed
			continue
		}
		if err != nil {
			return nil, err
		}
		var description libvirtxml.StorageVolume
		if err := description.Unmarshal(text); err != nil {
			return nil, err
		}
		if over := description.BackingStore; over != nil {
			used[baseOf(filepath.Base(over.Path))] = true
		}
		name := baseOf(vol.Name)
		if name == "" {
			continue
		}
		if found[name] == nil {
			found[name] = &Base{Pool: p.it.Name, Name: name}
		}
		if err := found[name].add(description); err != nil {
			return nil, err
		}
	}
	var bases []Base
	for _, name := range slices.Sorted(maps.Keys(found)) {
		found[name].InUse = used[name]
		bases = append(bases, *found[name])
	}
	return bases, nil
}

// add counts a volume, whose times are seconds since 1970 with a fraction.
func (b *Base) add(vol libvirtxml.StorageVolume) error {
	if vol.Allocation == nil || vol.Target == nil || vol.Target.Timestamps == nil {
		return fmt.Errorf("volume %s: libvirt does not say its size and times", vol.Name)
	}
	var seconds int64
	if _, err := fmt.Sscanf(vol.Target.Timestamps.Mtime, "%d", &seconds); err != nil {
		return fmt.Errorf("volume %s: time %q: %w", vol.Name, vol.Target.Timestamps.Mtime, err)
	}
	b.Size += int64(vol.Allocation.Value)
	if at := time.Unix(seconds, 0); at.After(b.Last) {
		b.Last = at
	}
	return nil
}

// baseOf is the base disk that the volume belongs to, "" for another volume.
func baseOf(volume string) string {
	if strings.HasPrefix(volume, boxPrefix) {
		return volume
	}
	if !strings.HasPrefix(volume, basePrefix) {
		return ""
	}
	name, _, _ := strings.Cut(volume, ".")
	return name
}
