package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8slab/lab/command"
)

// The two kinds of machine.
const (
	VirtualMachines = "qemu:///system"
	Containers      = "lxc:///system"
)

// Ability is something that this computer can or cannot do, and why, in words.
type Ability struct {
	OK  bool   `json:"ok"`
	Why string `json:"why"`
}

// Abilities are what this computer can run.
type Abilities struct {
	KVM        Ability `json:"kvm"`
	Emulation  Ability `json:"emulation"`
	Containers Ability `json:"containers"`
	Cgroups    string  `json:"cgroups"` // v1, hybrid or v2
	Libvirt    Ability `json:"libvirt"` // a daemon of the computer's own serves
	Root       bool    `json:"root"`
}

// Probe looks at this computer; it starts nothing.
func Probe() Abilities { return probe("/") }

func probe(root string) Abilities {
	a := Abilities{Cgroups: cgroups(root), Root: os.Geteuid() == 0}
	a.KVM = kvm(root)
	a.Emulation = Ability{true, "QEMU emulates an x86-64 processor, about ten times slower than KVM"}
	a.Containers = containers(root, a.Cgroups)
	a.Libvirt = Ability{false, "no libvirt daemon answers: the lab starts one of its own (as root)"}
	for _, uri := range []string{VirtualMachines, Containers} {
		for _, socket := range sockets[uri] {
			if answers(filepath.Join(root, socket)) {
				a.Libvirt = Ability{true, "a daemon answers at " + socket}
			}
		}
	}
	return a
}

// kvm wants both the processor's flag and the device: inside some virtual machines /dev/kvm opens and even creates a machine, on which no
// stock kernel boots.
func kvm(root string) Ability {
	info, err := os.ReadFile(filepath.Join(root, "proc/cpuinfo"))
	if err != nil {
		return Ability{false, err.Error()}
	}
	flag := ""
	for _, field := range strings.Fields(string(info)) {
		if field == "vmx" || field == "svm" {
			flag = field
			break
		}
	}
	if flag == "" {
		return Ability{false, "the processor shows neither vmx nor svm: no hardware virtualization here (in a virtual machine, nested virtualization is off)"}
	}
	if _, err := os.Stat(filepath.Join(root, "dev/kvm")); err != nil {
		return Ability{false, "the processor has " + flag + ", but there is no /dev/kvm: load the kvm module, or switch virtualization on in the firmware"}
	}
	return Ability{true, "the processor has " + flag + " and /dev/kvm is there"}
}

func cgroups(root string) string {
	dir := filepath.Join(root, "sys/fs/cgroup")
	if exists(filepath.Join(dir, "cgroup.controllers")) {
		return "v2"
	}
	if exists(filepath.Join(dir, "unified", "cgroup.controllers")) {
		return "hybrid"
	}
	return "v1"
}

// UnifiedControllers are those of cgroup v2 that kubelet and libvirt limit containers with.
var UnifiedControllers = []string{"cpu", "cpuset", "io", "memory", "pids"}

func containers(root, cgroups string) Ability {
	fs, err := os.ReadFile(filepath.Join(root, "proc/filesystems"))
	if err != nil {
		return Ability{false, err.Error()}
	}
	if !strings.Contains(string(fs), "\toverlay\n") {
		return Ability{false, "the kernel has no overlay filesystem: load the overlay module"}
	}
	if cgroups == "v2" {
		has, err := os.ReadFile(filepath.Join(root, "sys/fs/cgroup/cgroup.controllers"))
		if err != nil {
			return Ability{false, err.Error()}
		}
		for _, controller := range UnifiedControllers {
			if !slices.Contains(strings.Fields(string(has)), controller) {
				return Ability{false, "cgroup v2 has no controller " + controller}
			}
		}
		return Ability{true, "cgroup v2, overlay filesystem"}
	}
	for _, controller := range []string{"cpu", "cpuset", "devices", "freezer", "memory", "pids"} {
		if !exists(filepath.Join(root, "sys/fs/cgroup", controller)) {
			return Ability{false, "the cgroup controller " + controller + " is not mounted"}
		}
	}
	return Ability{true, "cgroup " + cgroups + ", overlay filesystem"}
}

// Emulated tells whether this computer's own processors are computed: it is a machine of QEMU's without KVM (systemd-detect-virt(1)).
var Emulated = sync.OnceValue(func() bool {
	out, err := command.Run(context.Background(), "systemd-detect-virt", "--vm")
	return err == nil && strings.TrimSpace(out) == "qemu"
})

// Choose settles `libvirt.uri: auto`, and says why in one line.
func (a Abilities) Choose() (uri, why string) {
	if a.KVM.OK {
		return VirtualMachines, "virtual machines: " + a.KVM.Why
	}
	return Containers, "containers, because virtual machines would be emulated: " + a.KVM.Why
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (a Abilities) String() string {
	line := func(name string, ab Ability) string {
		mark := "no "
		if ab.OK {
			mark = "yes"
		}
		return fmt.Sprintf("%-16s%s  %s\n", name, mark, ab.Why)
	}
	uri, why := a.Choose()
	return line("KVM", a.KVM) + line("emulation", a.Emulation) + line("containers", a.Containers) + line("libvirt daemon", a.Libvirt) +
		fmt.Sprintf("%-16s%s\n%-16s%s (%s)\n", "cgroups", a.Cgroups, "auto takes", uri, why)
}
