package host

import (
	"context"
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
	OK  bool
	Why string
}

// KVM tells whether this computer has hardware virtualization.
func KVM() bool { return kvm("/").OK }

// Choose settles `libvirt.uri: auto`, and says why in one line.
func Choose() (uri, why string) { return kvm("/").choose() }

func (kvm Ability) choose() (uri, why string) {
	if kvm.OK {
		return VirtualMachines, "virtual machines: " + kvm.Why
	}
	return Containers, "containers, because virtual machines would be emulated: " + kvm.Why
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

// missingControllers are those that container nodes need and the computer's cgroups do not have.
func missingControllers(root string) (missing []string) {
	if cgroups(root) == "v2" {
		has, _ := os.ReadFile(filepath.Join(root, "sys/fs/cgroup/cgroup.controllers"))
		return slices.DeleteFunc(slices.Clone(UnifiedControllers), func(c string) bool { return slices.Contains(strings.Fields(string(has)), c) })
	}
	return slices.DeleteFunc([]string{"cpu", "cpuset", "devices", "freezer", "memory", "pids"}, func(c string) bool {
		return exists(filepath.Join(root, "sys/fs/cgroup", c))
	})
}

// Emulated tells whether this computer's own processors are computed: it is a machine of QEMU's without KVM (systemd-detect-virt(1)).
var Emulated = sync.OnceValue(func() bool {
	out, err := command.Run(context.Background(), "systemd-detect-virt", "--vm")
	return err == nil && strings.TrimSpace(out) == "qemu"
})

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
