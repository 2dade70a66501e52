package machine

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/digitalocean/go-libvirt"
)

// Maker is who made a machine.
type Maker string

// Who can have made a machine of the lab.
const (
	Labctl  Maker = ""
	Vagrant Maker = "vagrant"
)

// VagrantMachine is a virtual machine in the terms of vagrant-libvirt's configuration. It is the machine that Ensure makes of the spec, as
// far as vagrant can express that.
type VagrantMachine struct {
	Name        string   `json:"name"`        // of the node
	Domain      string   `json:"domain"`      // of the machine
	Description string   `json:"description"` // of the domain: marks it as the lab's
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
	Seed        string   `json:"seed"` // volume of the storage pool that MakeVagrantSeed makes
	Console     string   `json:"console"`
}

// Vagrant describes the machine, whose storage pool has the directory poolDir.
func (l *Lab) Vagrant(spec Spec, poolDir string) VagrantMachine {
	m := VagrantMachine{
		Name: spec.Node, Domain: l.domainName(spec.Node), Description: fmt.Sprintf(vagrantDescription, spec.Node, l.cfg.Lab, l.cfg.ID),
		MAC: MAC(l.cfg.ID, spec.Node), Driver: l.driver(), MachineType: machineType, CPUMode: "host-passthrough",
		CPUs: spec.CPUs, Memory: spec.Memory, Disk: spec.Disk,
		Kernel: spec.Boot.Kernel, Initrd: spec.Boot.Initrd, Cmdline: l.cmdline(spec),
		Seed: l.volumeName(spec.Node, vagrantSeed), Console: filepath.Join(poolDir, l.volumeName(spec.Node, consoleVolume)),
	}
	if !l.cfg.KVM {
		m.CPUMode, m.CPUModel, m.CPUFeatures = "custom", emulatedModel, emulatedFeatures
	}
	return m
}

// vagrantDescription is the mark in a domain that vagrant made: vagrant can set a description but no metadata.
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

// MakeVagrantSeed makes the disk from which the node's machine reads its own files. It is qcow2: vagrant makes all its disks writable, and
// a snapshot needs qcow2 for each writable disk.
func (l *Lab) MakeVagrantSeed(ctx context.Context, node, dir string) error {
	seed, err := tarOf(ctx, dir)
	if err != nil {
		return err
	}
	if err := l.EnsurePool(ctx); err != nil {
		return err
	}
	return l.inPool(ctx, "seed of "+node, func(p pool) error {
		raw, name := l.volumeName(node, seedVolume), l.volumeName(node, vagrantSeed)
		if err := p.fill(raw, bytes.NewReader(seed), int64(len(seed))); err != nil {
			return err
		}
		if err := p.delete(func(volume string) bool { return volume == name }); err != nil {
			return err
		}
		from, err := p.libvirt.StorageVolLookupByName(p.it, raw)
		if err != nil {
			return err
		}
		text, err := volume{name: name, format: "qcow2", size: uint64(len(seed))}.xml()
		if err != nil {
			return err
		}
		_, err = p.libvirt.StorageVolCreateXMLFrom(p.it, text, from, 0)
		return err
	})
}

const vagrantDisk = ".img" // after the domain's name

// VagrantDisks lists the machines whose disks vagrant made in dir, the directory of the storage pool, for when there is no daemon to ask.
func VagrantDisks(dir, lab string) ([]Machine, error) {
	disks, err := filepath.Glob(filepath.Join(dir, lab+"-*"+vagrantDisk))
	var all []Machine
	for _, d := range disks {
		node := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(d), lab+"-"), vagrantDisk)
		all = append(all, Machine{Node: node, Maker: Vagrant})
	}
	return all, err
}
