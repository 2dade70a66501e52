package machine

import (
	"context"
	"encoding/xml"
	"fmt"

	"libvirt.org/go/libvirtxml"
)

// files are where libvirt has what is a virtual machine's own.
type files struct{ disk, seed, console string }

// describe describes the node's machine, whose disks are made, to libvirt.
func (l *Lab) describe(ctx context.Context, spec Spec) (string, error) {
	var own files
	if !l.container() {
		for kind, path := range map[string]*string{diskVolume: &own.disk, seedVolume: &own.seed, consoleVolume: &own.console} {
			var err error
			if *path, err = l.volumePath(ctx, spec.Node, kind); err != nil {
				return "", err
			}
		}
	}
	return l.domainXML(spec, own)
}

func (l *Lab) domainXML(spec Spec, own files) (string, error) {
	note, err := xml.Marshal(mark{Lab: l.cfg.Lab, ID: l.cfg.ID, Node: spec.Node})
	if err != nil {
		return "", err
	}
	dom := &libvirtxml.Domain{
		Name:     l.domainName(spec.Node),
		Metadata: &libvirtxml.DomainMetadata{XML: string(note)},
		Memory:   &libvirtxml.DomainMemory{Value: uint(spec.Memory), Unit: "MiB"},
		VCPU:     &libvirtxml.DomainVCPU{Value: uint(spec.CPUs)},
		OnCrash:  "preserve",
		Devices: &libvirtxml.DomainDeviceList{
			Interfaces: []libvirtxml.DomainInterface{{
				MAC:    &libvirtxml.DomainInterfaceMAC{Address: MAC(l.cfg.ID, spec.Node)},
				Source: &libvirtxml.DomainInterfaceSource{Network: &libvirtxml.DomainInterfaceSourceNetwork{Network: l.cfg.Lab}},
			}},
		},
	}
	if l.container() {
		l.containerDomain(dom, spec)
	} else {
		l.virtualDomain(dom, spec, own)
	}
	text, err := dom.Marshal()
	if err != nil {
		return "", fmt.Errorf("%s: domain XML: %w", spec.Node, err)
	}
	return text, nil
}

// initPath becomes systemd after preparing the container: lab/image/files.
const initPath = "/usr/lib/k8slab/init"

func (l *Lab) containerDomain(dom *libvirtxml.Domain, spec Spec) {
	dom.Type = "lxc"
	dom.OnCrash = "" // not known to its driver
	dom.OS = &libvirtxml.DomainOS{Type: &libvirtxml.DomainOSType{Type: "exe"}, Init: initPath}
	dom.Features = &libvirtxml.DomainFeatureList{
		PrivNet:      &libvirtxml.DomainFeature{},
		Capabilities: &libvirtxml.DomainFeatureCapabilities{Policy: "allow"},
	}
	// containerd, kubelet and systemd-udevd use more than a share of one processor in bursts, so the quota is the whole machine's.
	dom.CPUTune = &libvirtxml.DomainCPUTune{
		Period: &libvirtxml.DomainCPUTunePeriod{Value: 100000},
		Quota:  &libvirtxml.DomainCPUTuneQuota{Value: int64(spec.CPUs) * 100000},
	}
	if l.cfg.Partition != "" {
		dom.Resource = &libvirtxml.DomainResource{Partition: l.cfg.Partition}
	}
	bind := func(source, target string) libvirtxml.DomainFilesystem {
		return libvirtxml.DomainFilesystem{
			AccessMode: "passthrough",
			Source:     &libvirtxml.DomainFilesystemSource{Mount: &libvirtxml.DomainFilesystemSourceMount{Dir: source}},
			Target:     &libvirtxml.DomainFilesystemTarget{Dir: target},
		}
	}
	disk := libvirtxml.DomainFilesystem{
		AccessMode: "passthrough",
		Driver:     &libvirtxml.DomainFilesystemDriver{Type: "loop", Format: "raw"},
		Source:     &libvirtxml.DomainFilesystemSource{File: &libvirtxml.DomainFilesystemSourceFile{File: l.loopPath(spec.Node)}},
		Target:     &libvirtxml.DomainFilesystemTarget{Dir: "/disk"},
	}
	dom.Devices.Filesystems = []libvirtxml.DomainFilesystem{bind(spec.Boot.Root, "/"), bind(spec.Seed, "/seed"), disk}
	dom.Devices.Hostdevs = []libvirtxml.DomainHostdev{{ // kubelet watches it for out-of-memory kills
		CapsMisc: &libvirtxml.DomainHostdevCapsMisc{Source: &libvirtxml.DomainHostdevCapsMiscSource{Char: "/dev/kmsg"}},
	}}
	dom.Devices.Consoles = []libvirtxml.DomainConsole{{Source: &libvirtxml.DomainChardevSource{Pty: &libvirtxml.DomainChardevSourcePty{}}}}
}

func (l *Lab) virtualDomain(dom *libvirtxml.Domain, spec Spec, own files) {
	dom.Type = l.driver()
	dom.CPU = &libvirtxml.DomainCPU{Mode: "host-passthrough"}
	dom.Features = &libvirtxml.DomainFeatureList{ACPI: &libvirtxml.DomainFeature{}}
	if !l.cfg.KVM {
		dom.CPU = emulatedCPU()
		dom.Features.TCG = &libvirtxml.DomainFeatureTCG{TBCache: &libvirtxml.DomainFeatureTCGTBCache{Unit: "MiB", Size: translatedMiB}}
	}
	dom.OS = &libvirtxml.DomainOS{Type: &libvirtxml.DomainOSType{Arch: "x86_64", Machine: machineType, Type: "hvm"}}
	if spec.Boot.stock() {
		dom.OS.BootDevices = []libvirtxml.DomainBootDevice{{Dev: "hd"}}
	} else {
		dom.OS.Kernel, dom.OS.Initrd, dom.OS.Cmdline = spec.Boot.Kernel, spec.Boot.Initrd, l.cmdline(spec)
	}
	disk := func(path, format, dev string) libvirtxml.DomainDisk {
		return libvirtxml.DomainDisk{
			Device: "disk",
			Driver: &libvirtxml.DomainDiskDriver{Name: "qemu", Type: format},
			Source: &libvirtxml.DomainDiskSource{File: &libvirtxml.DomainDiskSourceFile{File: path}},
			Target: &libvirtxml.DomainDiskTarget{Dev: dev, Bus: "virtio"},
		}
	}
	// A thread of its own keeps etcd's writes from waiting for the emulator's main loop. Through this computer's page cache all machines
	// share what they read of the image; what they flush is written all the same. What they delete is given back.
	root := disk(own.disk, "qcow2", "vda")
	root.Driver.Cache, root.Driver.Discard, root.Driver.IOThread = "writeback", "unmap", new(uint(1))
	dom.IOThreads = 1
	seed := disk(own.seed, "raw", "vdb")
	seed.ReadOnly = &libvirtxml.DomainDiskReadOnly{}
	dom.Devices.Disks = []libvirtxml.DomainDisk{root, seed}
	dom.Devices.Interfaces[0].Model = &libvirtxml.DomainInterfaceModel{Type: "virtio"}
	dom.Devices.RNGs = []libvirtxml.DomainRNG{{
		Model:   "virtio",
		Backend: &libvirtxml.DomainRNGBackend{Random: &libvirtxml.DomainRNGBackendRandom{Device: "/dev/urandom"}},
	}}
	dom.Devices.Serials = []libvirtxml.DomainSerial{{
		Source: &libvirtxml.DomainChardevSource{File: &libvirtxml.DomainChardevSourceFile{Path: own.console, Append: "on"}},
	}}
}

const machineType = "q35"

func (l *Lab) driver() string {
	if l.cfg.KVM {
		return "kvm"
	}
	return "qemu"
}

// cmdline is the kernel's command line.
func (l *Lab) cmdline(spec Spec) string {
	text := fmt.Sprintf("%s systemd.hostname=%s systemd.machine_id=%s", spec.Boot.Cmdline, spec.Node, spec.MachineID)
	if !l.cfg.KVM {
		text += " " + emulatedCmdline
	}
	return text
}

// emulatedCmdline makes an emulated machine read the time from the processor: Linux takes the time stamp counters of two emulated
// processors for unsynchronised and falls back to the HPET, each read of which stops the emulator, and Go's scheduler reads it at every turn.
// Timers go by the 4 ms of the tick: those of Go's schedulers are of 20 µs, and had the emulator's main loop wake 5600 times a second (750).
// Nothing that mitigations protect from can happen in an emulator, and the kernel's ciphers are known to be right.
const emulatedCmdline = "tsc=reliable clocksource=tsc highres=off mitigations=off cryptomgr.notests" +
	" systemd.setenv=" + EmulatedGOGC + " systemd.setenv=" + EmulatedGOMAXPROCS

// Environment of Go programs on emulated machines, where processor time is dearer than memory and one thread that wakes another on the
// other processor costs more than it wins.
const (
	EmulatedGOGC       = "GOGC=400"
	EmulatedGOMAXPROCS = "GOMAXPROCS=1"
)

// translatedMiB is how much translated code the emulator keeps, the most that it can. With its default of 1024, a control plane's bring-up
// filled it five times, and each time the emulator forgot all of it. It is taken from this computer as it fills.
const translatedMiB = 2048

const emulatedModel = "qemu64"

var emulatedFeatures = []string{"aes", "pclmuldq", "ssse3", "sse4.1", "sse4.2", "popcnt", "movbe", "bmi2", "adx"}

// emulatedCPU is the plainest model, because what more it had the emulator would have to compute, with the instructions that compute TLS
// in one step of the emulator instead of hundreds. bmi1 is not among them: where both are, programs take another way of unpacking zstd, which QEMU 7.2
// computes wrongly, so that a kernel of Debian 13 halts before it says a word.
func emulatedCPU() *libvirtxml.DomainCPU {
	cpu := &libvirtxml.DomainCPU{Mode: "custom", Match: "exact", Model: &libvirtxml.DomainCPUModel{Fallback: "allow", Value: emulatedModel}}
	for _, name := range emulatedFeatures {
		cpu.Features = append(cpu.Features, libvirtxml.DomainCPUFeature{Policy: "require", Name: name})
	}
	return cpu
}
