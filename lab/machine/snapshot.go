package machine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// Snapshot is a virtual machine at one moment: its memory, its devices and its disk.
type Snapshot struct {
	Name string
	Time time.Time // when it was saved, to the second
}

// ErrNoSnapshots is returned for containers: libvirt's container driver can neither save nor restore one.
var ErrNoSnapshots = errors.New("libvirt saves no memory of containers, only of virtual machines")

var errAbsent = errors.New("is absent")

// SaveSnapshot saves a paused machine, which stays paused. Its memory goes into a file of its own, and its disk into the disk's file while
// the machine is off for a moment. QEMU could keep the memory in the disk's file too, but then a restore takes five times as long.
func (l *Lab) SaveSnapshot(ctx context.Context, node, name string) error {
	text, err := (&libvirtxml.DomainSnapshot{Name: name, Description: "labctl snapshot save"}).Marshal()
	if err != nil {
		return err
	}
	return l.withDomain(ctx, node, func(dom libvirt.Domain) error {
		memory, err := l.makeMemory(ctx, node, name)
		if err != nil {
			return err
		}
		err = l.change(ctx, "save memory of "+dom.Name, func(v *libvirt.Libvirt) error {
			return v.DomainSave(dom, memory)
		})
		if err != nil {
			return err
		}
		err = l.change(ctx, "save snapshot "+name+" of "+dom.Name, func(v *libvirt.Libvirt) error {
			_, err := v.DomainSnapshotCreateXML(dom, text, 0)
			return err
		})
		return errors.Join(err, l.restoreMemory(ctx, dom, memory))
	})
}

// makeMemory makes the volume for a snapshot's memory, which has secrets of the cluster in it, and returns its path.
func (l *Lab) makeMemory(ctx context.Context, node, name string) (path string, err error) {
	kind := memoryVolume + name
	if _, err := l.volumePath(ctx, node, kind); err == nil {
		return "", fmt.Errorf("%s has the memory of a snapshot %s already", node, name)
	}
	err = l.inPool(ctx, "memory of "+node, func(p pool) error {
		vol, err := p.ensure(volume{name: l.volumeName(node, kind), format: "raw"})
		if err != nil {
			return err
		}
		path, err = p.libvirt.StorageVolGetPath(vol)
		return err
	})
	return path, err
}

func (l *Lab) restoreMemory(ctx context.Context, dom libvirt.Domain, memory string) error {
	return l.change(ctx, "restore memory of "+dom.Name, func(v *libvirt.Libvirt) error {
		return v.DomainRestore(memory) // paused, as it was saved
	})
}

// RevertSnapshot makes the machine what it was when the snapshot was saved, paused.
func (l *Lab) RevertSnapshot(ctx context.Context, node, name string) error {
	return l.withSnapshot(ctx, node, name, func(s libvirt.DomainSnapshot) error {
		if err := l.PowerOff(ctx, node); err != nil {
			return err
		}
		memory, err := l.volumePath(ctx, node, memoryVolume+name)
		if err != nil {
			return err
		}
		err = l.change(ctx, "revert "+s.Dom.Name+" to snapshot "+name, func(v *libvirt.Libvirt) error {
			return v.DomainRevertToSnapshot(s, 0)
		})
		if err != nil {
			return err
		}
		return l.restoreMemory(ctx, s.Dom, memory)
	})
}

// DeleteSnapshot deletes the snapshot, also what is left of it when the machine is absent. It is no error if there is none.
func (l *Lab) DeleteSnapshot(ctx context.Context, node, name string) error {
	err := l.withSnapshot(ctx, node, name, func(s libvirt.DomainSnapshot) error {
		return l.change(ctx, "delete snapshot "+name+" of "+s.Dom.Name, func(v *libvirt.Libvirt) error { return v.DomainSnapshotDelete(s, 0) })
	})
	if err != nil && !is(err, libvirt.ErrNoDomainSnapshot) && !errors.Is(err, errAbsent) {
		return err
	}
	return l.withPool(ctx, "delete memory of "+node, func(p pool) error {
		return p.delete(func(volume string) bool { return volume == l.volumeName(node, memoryVolume+name) })
	})
}

// Snapshots lists those of the machine; an absent one has none.
func (l *Lab) Snapshots(ctx context.Context, node string) (all []Snapshot, err error) {
	if l.container() {
		return nil, ErrNoSnapshots
	}
	dom, state, err := l.lookup(ctx, node)
	if err != nil || state == Absent {
		return nil, err
	}
	err = l.domains.call(ctx, "list snapshots of "+dom.Name, func(v *libvirt.Libvirt) error {
		found, _, err := v.DomainListAllSnapshots(dom, 1, 0)
		if err != nil {
			return err
		}
		for _, s := range found {
			text, err := v.DomainSnapshotGetXMLDesc(s, 0)
			if err != nil {
				return err
			}
			var description libvirtxml.DomainSnapshot
			if err := description.Unmarshal(text); err != nil {
				return err
			}
			seconds, err := strconv.ParseInt(description.CreationTime, 10, 64)
			if err != nil {
				return fmt.Errorf("snapshot %s: creation time: %w", s.Name, err)
			}
			all = append(all, Snapshot{Name: s.Name, Time: time.Unix(seconds, 0).UTC()})
		}
		return nil
	})
	return all, err
}

// withDomain calls a function for a virtual machine that exists.
func (l *Lab) withDomain(ctx context.Context, node string, do func(libvirt.Domain) error) error {
	if l.container() {
		return ErrNoSnapshots
	}
	dom, state, err := l.lookup(ctx, node)
	if err != nil {
		return err
	}
	if state == Absent {
		return fmt.Errorf("the machine of %s %w", node, errAbsent)
	}
	return do(dom)
}

func (l *Lab) withSnapshot(ctx context.Context, node, name string, do func(libvirt.DomainSnapshot) error) error {
	return l.withDomain(ctx, node, func(dom libvirt.Domain) error {
		var s libvirt.DomainSnapshot
		err := l.domains.call(ctx, "look up snapshot "+name+" of "+dom.Name, func(v *libvirt.Libvirt) (err error) {
			s, err = v.DomainSnapshotLookupByName(dom, name, 0)
			return err
		})
		if err != nil {
			return err
		}
		return do(s)
	})
}
