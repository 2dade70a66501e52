package machine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// The files of virtual machines are volumes of a libvirt storage pool, and labctl makes and fills them only through libvirt. So they are
// where the profiles of AppArmor and SELinux allow them, and neither QEMU nor the user of labctl needs to be root.

// storageURI selects libvirt's storage driver.
const storageURI = "storage:///system"

// poolTypes keep volumes as files, which can be qcow2.
var poolTypes = []string{"dir", "fs", "netfs"}

// pool is a storage pool at the other end of a connection.
type pool struct {
	libvirt *libvirt.Libvirt
	it      libvirt.StoragePool
	mutated func(what string)
}

// poolUUID is the UUID of pools that labs make. It tells them from a user's own.
func poolUUID(name string) string {
	h := sha256.Sum256([]byte("k8slab storage pool " + name))
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

func (p pool) madeHere() bool { return uuidString(p.it.UUID) == poolUUID(p.it.Name) }

// EnsurePool makes the storage pool if it is absent. A pool that a user made must be active, and keep volumes as files.
func (l *Lab) EnsurePool(ctx context.Context) error {
	return l.storage.call(ctx, "storage pool "+l.cfg.Pool, func(v *libvirt.Libvirt) error {
		it, err := v.StoragePoolLookupByName(l.cfg.Pool)
		if is(err, libvirt.ErrNoStoragePool) {
			it, err = l.makePool(v)
		}
		if err != nil {
			return err
		}
		p := pool{v, it, l.cfg.Mutated}
		description, err := p.describe()
		if err != nil {
			return err
		}
		if !slices.Contains(poolTypes, description.Type) {
			return fmt.Errorf("it is a pool of type %s, and a lab's disks are files; next: set libvirt.pool in cluster.yaml to one of type %s, or to a new name",
				description.Type, strings.Join(poolTypes, ", "))
		}
		active, err := v.StoragePoolIsActive(it)
		if err != nil || active == 1 {
			return err
		}
		if !p.madeHere() {
			return fmt.Errorf("it is not active; next: virsh --connect %s pool-start %s", l.cfg.URI, it.Name)
		}
		l.cfg.Mutated("libvirt start storage pool " + it.Name)
		if err := v.StoragePoolCreate(it, 0); !is(err, libvirt.ErrOperationInvalid) { // another lab has just started it
			return err
		}
		return nil
	})
}

func (l *Lab) makePool(v *libvirt.Libvirt) (it libvirt.StoragePool, err error) {
	text, err := (&libvirtxml.StoragePool{
		Type: "dir", Name: l.cfg.Pool, UUID: poolUUID(l.cfg.Pool),
		Target: &libvirtxml.StoragePoolTarget{Path: l.cfg.PoolDir, Permissions: &libvirtxml.StoragePoolTargetPermissions{Mode: "0711"}},
	}).Marshal()
	if err != nil {
		return it, err
	}
	l.cfg.Mutated("libvirt make storage pool " + l.cfg.Pool)
	if it, err = v.StoragePoolDefineXML(text, 0); err != nil {
		return it, err
	}
	if err := v.StoragePoolBuild(it, libvirt.StoragePoolBuildNew); err != nil {
		return it, err
	}
	return it, v.StoragePoolSetAutostart(it, 1)
}

// PoolPath is the directory of the storage pool.
func (l *Lab) PoolPath(ctx context.Context) (path string, err error) {
	err = l.inPool(ctx, "directory", func(p pool) error {
		description, err := p.describe()
		if err == nil {
			path = description.Target.Path
		}
		return err
	})
	return path, err
}

// withPool calls a function with the storage pool. It does nothing if there is no pool.
func (l *Lab) withPool(ctx context.Context, what string, do func(pool) error) error {
	if l.container() {
		return nil
	}
	err := l.storage.call(ctx, "storage pool "+l.cfg.Pool+": "+what, func(v *libvirt.Libvirt) error {
		it, err := v.StoragePoolLookupByName(l.cfg.Pool)
		if err != nil {
			return err
		}
		return do(pool{v, it, l.cfg.Mutated})
	})
	if is(err, libvirt.ErrNoStoragePool) {
		return nil
	}
	return err
}

// inPool is withPool, but fails if there is no pool.
func (l *Lab) inPool(ctx context.Context, what string, do func(pool) error) error {
	found := false
	err := l.withPool(ctx, what, func(p pool) error {
		found = true
		return do(p)
	})
	if err == nil && !found {
		return fmt.Errorf("%s: libvirt has no storage pool %s", what, l.cfg.Pool)
	}
	return err
}

func (p pool) describe() (description libvirtxml.StoragePool, err error) {
	text, err := p.libvirt.StoragePoolGetXMLDesc(p.it, 0)
	if err == nil {
		err = description.Unmarshal(text)
	}
	if err == nil && description.Target == nil {
		err = errors.New("libvirt does not say where it is")
	}
	return description, err
}

// removeIfEmpty removes a pool that labs made once it has no volumes.
func (p pool) removeIfEmpty() error {
	if !p.madeHere() {
		return nil
	}
	if n, err := p.libvirt.StoragePoolNumOfVolumes(p.it); err != nil || n > 0 {
		return err
	}
	p.mutated("libvirt delete storage pool " + p.it.Name)
	if err := p.libvirt.StoragePoolDestroy(p.it); err != nil {
		return err
	}
	if err := p.libvirt.StoragePoolDelete(p.it, 0); err != nil {
		return err
	}
	return p.libvirt.StoragePoolUndefine(p.it)
}

// volume describes a volume to make.
type volume struct {
	name    string
	format  string // raw or qcow2
	size    uint64 // bytes, of the disk in it
	backing string // path of the qcow2 file that it is an overlay of, "" for none
}

// xml is the description of the volume for libvirt. Only root can read the file until a machine uses it.
func (vol volume) xml() (string, error) {
	description := libvirtxml.StorageVolume{
		Name: vol.name, Capacity: &libvirtxml.StorageVolumeSize{Value: vol.size}, Allocation: &libvirtxml.StorageVolumeSize{},
		Target: &libvirtxml.StorageVolumeTarget{
			Format:      &libvirtxml.StorageVolumeTargetFormat{Type: vol.format},
			Permissions: &libvirtxml.StorageVolumeTargetPermissions{Mode: "0600"},
		},
	}
	if vol.backing != "" {
		description.BackingStore = &libvirtxml.StorageVolumeBackingStore{Path: vol.backing, Format: &libvirtxml.StorageVolumeTargetFormat{Type: "qcow2"}}
	}
	return description.Marshal()
}

// ensure makes the volume if it is absent, and returns it.
func (p pool) ensure(vol volume) (libvirt.StorageVol, error) {
	found, err := p.libvirt.StorageVolLookupByName(p.it, vol.name)
	if !is(err, libvirt.ErrNoStorageVol) {
		return found, err
	}
	text, err := vol.xml()
	if err != nil {
		return found, err
	}
	p.mutated("libvirt make volume " + vol.name)
	return p.libvirt.StorageVolCreateXML(p.it, text, 0)
}

// fill makes the volume with this content.
func (p pool) fill(name string, content io.Reader, size int64) error {
	vol, err := p.ensure(volume{name: name, format: "raw", size: uint64(size)})
	if err != nil {
		return err
	}
	p.mutated("libvirt upload volume " + name)
	return p.libvirt.StorageVolUpload(vol, content, 0, uint64(size), 0)
}

// path is the path of the volume's file.
func (p pool) path(name string) (string, error) {
	vol, err := p.libvirt.StorageVolLookupByName(p.it, name)
	if err != nil {
		return "", err
	}
	return p.libvirt.StorageVolGetPath(vol)
}

// delete deletes the volumes for which belongs is true. libvirt first rescans the pool for files that it does not know, such as the older
// parts of a console.
func (p pool) delete(belongs func(name string) bool) error {
	_ = p.libvirt.StoragePoolRefresh(p.it, 0) // fails while another lab fills a volume: then only volumes that libvirt knows are deleted
	volumes, _, err := p.libvirt.StoragePoolListAllVolumes(p.it, 1, 0)
	if err != nil {
		return err
	}
	for _, vol := range volumes {
		if !belongs(vol.Name) {
			continue
		}
		p.mutated("libvirt delete volume " + vol.Name)
		if err := p.libvirt.StorageVolDelete(vol, 0); err != nil && !is(err, libvirt.ErrNoStorageVol) {
			return err
		}
	}
	return nil
}
