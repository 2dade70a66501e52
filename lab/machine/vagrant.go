package machine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"

	"k8slab/lab/command"
)

// Maker is who made a machine.
type Maker string

// Who can have made a machine of the lab.
const (
	Labctl  Maker = ""
	Vagrant Maker = "vagrant"
)

// VagrantMachine is a virtual machine in the terms of vagrant-libvirt's configuration: the same as Ensure makes of the spec, but for
// what that cannot express.
type VagrantMachine struct {
	Name        string   `json:"name"`        // of the node
	Domain      string   `json:"domain"`      // of the machine
	Description string   `json:"description"` // of the domain; by it the lab knows the machine for its own
	MAC         string   `json:"mac"`
	Driver      string   `json:"driver"` // kvm or qemu
	MachineType string   `json:"machine_type"`
	CPUMode     string   `json:"cpu_mode"`
	CPUModel    string   `json:"cpu_model,omitempty"`
	CPUFeatures []string `json:"cpu_features,omitempty"`
	CPUs        int      `json:"cpus"`
	Memory      int      `json:"memory"` // MiB
	Disk        int      `json:"disk"`   // GiB
	Kernel      string   `json:"kernel"`
	Initrd      string   `json:"initrd"`
	Cmdline     string   `json:"cmdline"`
	Seed        string   `json:"seed"` // volume of the lab's storage pool that MakeVagrantSeed makes
	Console     string   `json:"console"`
}

// Vagrant describes the machine.
func (l *Lab) Vagrant(spec Spec) VagrantMachine {
	m := VagrantMachine{
		Name: spec.Node, Domain: l.domainName(spec.Node), Description: fmt.Sprintf(vagrantDescription, spec.Node, l.cfg.Lab, l.cfg.ID),
		MAC: MAC(l.cfg.ID, spec.Node), Driver: l.driver(), MachineType: machineType, CPUMode: "host-passthrough",
		CPUs: spec.CPUs, Memory: spec.Memory, Disk: spec.Disk,
		Kernel: spec.Boot.Kernel, Initrd: spec.Boot.Initrd, Cmdline: l.cmdline(spec),
		Seed: seedVolume(spec.Node), Console: l.ConsolePath(spec.Node),
	}
	if !l.cfg.KVM {
		m.CPUMode, m.CPUModel, m.CPUFeatures = "custom", emulatedModel, emulatedFeatures
	}
	return m
}

// vagrantDescription is the mark that vagrant can give a domain, which knows nothing of metadata.
const vagrantDescription = "node %s of lab %s (%s), made by vagrant"

var vagrantDescribed = regexp.MustCompile(`^node (\S+) of lab (\S+) \(([0-9a-f-]{36})\), made by vagrant$`)

func (l *Lab) vagrantMark(ctx context.Context, dom libvirt.Domain) (mark, error) {
	var text string
	err := l.domains.call(ctx, "description of "+dom.Name, func(v *libvirt.Libvirt) (err error) {
		text, err = v.DomainGetMetadata(dom, int32(libvirt.DomainMetadataDescription), nil, 0)
		return err
	})
	if is(err, libvirt.ErrNoDomainMetadata) {
		return mark{}, nil
	}
	if err != nil {
		return mark{}, err
	}
	m := vagrantDescribed.FindStringSubmatch(text)
	if m == nil {
		return mark{}, nil
	}
	return mark{Lab: m[2], ID: m[3], Node: m[1], Maker: Vagrant}, nil
}

// MakeVagrantSeed makes the disk from which the node's machine reads its own files a volume of the lab's storage pool: vagrant can attach
// nothing else. It is qcow2, because every disk that can be written must be able to keep snapshots.
func (l *Lab) MakeVagrantSeed(ctx context.Context, node, dir string) error {
	if err := l.makeSeed(ctx, node, dir); err != nil {
		return err
	}
	if err := os.MkdirAll(l.poolDir(), 0o700); err != nil {
		return err
	}
	path := filepath.Join(l.poolDir(), seedVolume(node))
	_, err := command.Run(ctx, "qemu-img", "convert", "-f", "raw", "-O", "qcow2", l.seedPath(node), path)
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		return err
	}
	return l.refreshPool(ctx)
}

func seedVolume(node string) string { return "seed-" + node + ".qcow2" }

// poolDir is where the disks of vagrant's machines are.
func (l *Lab) poolDir() string { return filepath.Join(l.cfg.Dir, vagrantDir) }

const (
	vagrantDir  = "vagrant"
	vagrantDisk = ".img" // after the domain's name
)

// VagrantDisks lists the machines whose disks vagrant made in dir, the lab's Config.Dir, for when there is no daemon to ask.
func VagrantDisks(dir, lab string) ([]Machine, error) {
	disks, err := filepath.Glob(filepath.Join(dir, vagrantDir, lab+"-*"+vagrantDisk))
	var all []Machine
	for _, d := range disks {
		node := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(d), lab+"-"), vagrantDisk)
		all = append(all, Machine{Node: node, Maker: Vagrant})
	}
	return all, err
}

// refreshPool makes the lab's storage pool, named as the lab, and has libvirt look at what is in it.
func (l *Lab) refreshPool(ctx context.Context) error {
	text, err := (&libvirtxml.StoragePool{
		Type: "dir", Name: l.cfg.Lab, UUID: l.cfg.ID, Target: &libvirtxml.StoragePoolTarget{Path: l.poolDir()},
	}).Marshal()
	if err != nil {
		return err
	}
	return l.change(ctx, "refresh storage pool "+l.cfg.Lab, func(v *libvirt.Libvirt) error {
		pool, err := v.StoragePoolDefineXML(text, 0) // ours by its UUID, so defining again renews it
		if err != nil {
			return err
		}
		if active, err := v.StoragePoolIsActive(pool); err != nil {
			return err
		} else if active == 1 {
			return v.StoragePoolRefresh(pool, 0)
		}
		return v.StoragePoolCreate(pool, 0)
	})
}

// DeletePool removes the lab's storage pool from libvirt, if there is one. Its files go with DeleteAllDisks.
func (l *Lab) DeletePool(ctx context.Context) error {
	return l.withPool(ctx, func(v *libvirt.Libvirt, pool libvirt.StoragePool) error {
		l.cfg.Mutated("libvirt delete storage pool " + l.cfg.Lab)
		if active, err := v.StoragePoolIsActive(pool); err != nil {
			return err
		} else if active == 1 {
			if err := v.StoragePoolDestroy(pool); err != nil {
				return err
			}
		}
		return v.StoragePoolUndefine(pool)
	})
}

// deleteVolumes removes a machine's disks from the lab's storage pool, where there are any.
func (l *Lab) deleteVolumes(ctx context.Context, node string) error {
	return l.withPool(ctx, func(v *libvirt.Libvirt, pool libvirt.StoragePool) error {
		for _, name := range []string{l.domainName(node) + vagrantDisk, seedVolume(node)} {
			volume, err := v.StorageVolLookupByName(pool, name)
			if is(err, libvirt.ErrNoStorageVol) {
				continue
			}
			if err != nil {
				return err
			}
			l.cfg.Mutated("libvirt delete volume " + name)
			if err := v.StorageVolDelete(volume, 0); err != nil {
				return err
			}
		}
		return nil
	})
}

// withPool does something with the lab's storage pool; nothing when there is none.
func (l *Lab) withPool(ctx context.Context, do func(*libvirt.Libvirt, libvirt.StoragePool) error) error {
	if l.container() {
		return nil
	}
	err := l.domains.call(ctx, "storage pool "+l.cfg.Lab, func(v *libvirt.Libvirt) error {
		pool, err := v.StoragePoolLookupByName(l.cfg.Lab)
		if err != nil {
			return err
		}
		if uuidString(pool.UUID) != l.cfg.ID { // another's, and none of ours: defining one of that name would have failed
			return nil
		}
		return do(v, pool)
	})
	if is(err, libvirt.ErrNoStoragePool) {
		return nil
	}
	return err
}
