package machine

import (
	"context"
	"encoding/xml"
	"fmt"

	"libvirt.org/go/libvirtxml"
)

// files are the paths of a virtual machine's own volumes.
type files struct {
	disk, seed, console string
	extra               []string
}

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
		for i := range spec.Disks {
			path, err := l.volumePath(ctx, spec.Node, extraVolume(i))
			if err != nil {
				return "", err
			}
			own.extra = append(own.extra, path)
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
		OnCrash:  "preserve",
		Devices: &libvirtxml.DomainDeviceList{
			Interfaces: []libvirtxml.DomainInterface{{
				MAC:    &libvirtxml.DomainInterfaceMAC{Address: MAC(l.cfg.ID, spec.Node)},
				Source: &libvirtxml.DomainInterfaceSource{Network: &libvirtxml.DomainInterfaceSourceNetwork{Network: l.cfg.Lab}},
			}},
		},
	}
	l.size(dom, spec)
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

// size describes how large the machine is. A container's quota is for the whole machine, not per processor: containerd, kubelet and
// systemd-udevd use more than one processor in bursts.
func (l *Lab) size(d *libvirtxml.Domain, spec Spec) {
	d.Memory = &libvirtxml.DomainMemory{Value: uint(spec.Memory), Unit: "MiB"}
	d.VCPU = &libvirtxml.DomainVCPU{Value: uint(spec.CPUs)}
	if l.container() {
		d.CPUTune = &libvirtxml.DomainCPUTune{
			Period: &libvirtxml.DomainCPUTunePeriod{Value: quotaPeriod},
			Quota:  &libvirtxml.DomainCPUTuneQuota{Value: int64(spec.CPUs) * quotaPeriod},
		}
	}
}

// quotaPeriod is the time in which a container may use its quota, in microseconds.
const quotaPeriod = 100000

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
	for i := range spec.Disks {
		dom.Devices.Disks = append(dom.Devices.Disks, diskOf("loop", "raw", l.extraLoop(spec.Node, i), extraDevice(i)))
	}
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
	// The disk gets its own I/O thread, so that etcd's writes do not wait for the emulator's main loop. With this computer's page cache,
	// machines share what they read of the image; flushes are still written. Deleted blocks are given back.
	root := diskOf("qemu", "qcow2", own.disk, "vda")
	root.Driver.Cache, root.Driver.Discard, root.Driver.IOThread = "writeback", "unmap", new(uint(1))
	dom.IOThreads = 1
	seed := diskOf("qemu", "raw", own.seed, "vdb")
	seed.ReadOnly = &libvirtxml.DomainDiskReadOnly{}
	dom.Devices.Disks = []libvirtxml.DomainDisk{root, seed}
	for i, path := range own.extra {
		extra := diskOf("qemu", "qcow2", path, extraDevice(i))
		extra.Driver.Discard = "unmap"
		dom.Devices.Disks = append(dom.Devices.Disks, extra)
	}
	dom.Devices.Interfaces[0].Model = &libvirtxml.DomainInterfaceModel{Type: "virtio"}
	dom.Devices.RNGs = []libvirtxml.DomainRNG{{
		Model:   "virtio",
		Backend: &libvirtxml.DomainRNGBackend{Random: &libvirtxml.DomainRNGBackendRandom{Device: "/dev/urandom"}},
	}}
	dom.Devices.Serials = []libvirtxml.DomainSerial{{
		Source: &libvirtxml.DomainChardevSource{File: &libvirtxml.DomainChardevSourceFile{Path: own.console, Append: "on"}},
	}}
}

// diskOf is a disk of the machine, which the node sees as /dev/DEVICE.
func diskOf(driver, format, path, device string) libvirtxml.DomainDisk {
	return libvirtxml.DomainDisk{
		Device: "disk",
		Driver: &libvirtxml.DomainDiskDriver{Name: driver, Type: format},
		Source: &libvirtxml.DomainDiskSource{File: &libvirtxml.DomainDiskSourceFile{File: path}},
		Target: &libvirtxml.DomainDiskTarget{Dev: device, Bus: "virtio"},
	}
}

// extraDevice is the device of an empty disk. A virtual machine has vda and vdb anyway.
func extraDevice(i int) string { return fmt.Sprintf("vd%c", 'c'+i) }

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

// emulatedCmdline makes an emulated machine read the time from the processor. By default Linux considers the time stamp counters of two
// emulated processors unsynchronised and uses the HPET; each read of that stops the emulator, and Go's scheduler reads the time constantly.
// Timers have the resolution of the 4 ms tick: the 20 µs timers of Go's schedulers woke the emulator's main loop 5600 times a second (now
// 750). Mitigations are useless in an emulator, and so are the self-tests of the kernel's ciphers.
const emulatedCmdline = "tsc=reliable clocksource=tsc highres=off mitigations=off cryptomgr.notests" +
	" systemd.setenv=" + EmulatedGOGC + " systemd.setenv=" + EmulatedGOMAXPROCS

// Environment of Go programs on emulated machines: collect garbage less often, because processor time is scarcer than memory, and use one
// processor, because waking a thread on another one costs more than it gains.
const (
	EmulatedGOGC       = "GOGC=400"
	EmulatedGOMAXPROCS = "GOMAXPROCS=1"
)

// translatedMiB is the size of the emulator's cache of translated code, the largest possible. With the default of 1024 a control plane
// filled it five times during bring-up, and each time the emulator discarded all of it. Memory is only used as the cache fills.
const translatedMiB = 2048

const emulatedModel = "qemu64"

var emulatedFeatures = []string{"aes", "pclmuldq", "ssse3", "sse4.1", "sse4.2", "popcnt", "movbe", "bmi2", "adx"}

// emulatedCPU is the simplest processor model, because the emulator has to compute every feature, plus the instructions that do TLS in one
// step instead of hundreds. Without bmi1: with it programs unpack zstd in another way, which QEMU 7.2 computes wrongly, so that a kernel of
// Debian 13 halts before it prints anything.
func emulatedCPU() *libvirtxml.DomainCPU {
	cpu := &libvirtxml.DomainCPU{Mode: "custom", Match: "exact", Model: &libvirtxml.DomainCPUModel{Fallback: "allow", Value: emulatedModel}}
	for _, name := range emulatedFeatures {
		cpu.Features = append(cpu.Features, libvirtxml.DomainCPUFeature{Policy: "require", Name: name})
	}
	return cpu
}
