package host

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8slab/lab/command"
)

// Result of a check of this computer.
type Result string

// Results, from good to bad.
const (
	OK    Result = "ok"    // nothing to do
	Mends Result = "mends" // `labctl up` repairs it
	Warn  Result = "warn"  // a lab works, with a drawback
	Fails Result = "fails" // no lab comes up before somebody repairs it
)

// Check is one property of this computer that a lab depends on.
type Check struct {
	ID     string `json:"id"` // kebab-case: docs/hosts.md lists all
	Result Result `json:"result"`
	Seen   string `json:"seen"`
	Why    string `json:"why,omitempty"` // why it matters, unless OK
	Do     string `json:"do,omitempty"`  // the command that repairs it; empty where up does
}

// Plan is the lab that this computer is to carry.
type Plan struct {
	URI      string       // of its machines: Containers or VirtualMachines
	Own      bool         // it has a libvirt daemon of its own, in a network namespace of its own
	Uplink   bool         // the machines reach what this computer reaches
	Build    bool         // Kubernetes must be compiled for its node image
	Packages []string     // that it needs beside libvirt
	Network  netip.Prefix // of its machines; invalid for a lab that has its network already
}

// computer is what the checks read of this computer; tests replace it.
type computer struct {
	computerKernel
	user int
	look func(program string) (string, error)
	run  func(ctx context.Context, argv ...string) (string, error)
}

// Examine checks this computer in well under a second, and changes nothing. The worst results come first, and within the same result the
// checks are in the order of a bring-up.
func Examine(ctx context.Context, p Plan) []Check {
	return computer{computerKernel: thisKernel, user: os.Geteuid(), look: exec.LookPath, run: command.Run}.examine(ctx, p)
}

func (c computer) examine(ctx context.Context, p Plan) []Check {
	all := []struct {
		id  string
		run func(context.Context, Plan) Check
	}{
		{"machines", c.kind}, {"root", c.privileges}, {"packages", c.packages}, {"go", c.golang}, {"cgroups", c.hierarchy}, {"kernel-modules", c.modules},
		{"inotify", c.inotify}, {"swap", c.swap}, {"processor", c.processor}, {"apparmor", c.apparmor},
		{"network", c.network}, {"forwarding", c.forwarding}, {"firewall", c.firewall},
	}
	checks := make([]Check, len(all))
	var wg sync.WaitGroup
	for i, check := range all {
		wg.Go(func() {
			checks[i] = check.run(ctx, p)
			checks[i].ID = check.id
		})
	}
	wg.Wait()
	severity := []Result{Fails, Warn, Mends, OK}
	slices.SortStableFunc(checks, func(a, b Check) int { return slices.Index(severity, a.Result) - slices.Index(severity, b.Result) })
	return checks
}

func fine(seen string) Check { return Check{Result: OK, Seen: seen} }

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

// kvm requires both the processor flag and the device: in some virtual machines /dev/kvm can be opened and even creates a machine, but no
// stock kernel boots in it.
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

// UnifiedControllers are the cgroup v2 controllers with which kubelet and libvirt limit containers.
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

// Emulated tells whether this computer itself is an emulated virtual machine: QEMU without KVM (systemd-detect-virt(1)).
var Emulated = sync.OnceValue(func() bool {
	out, err := command.Run(context.Background(), "systemd-detect-virt", "--vm")
	return err == nil && strings.TrimSpace(out) == "qemu"
})

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Size is what this computer has for machines.
type Size struct {
	CPUs   int
	Memory int // MiB
}

// Measure reads this computer's size.
func Measure() (Size, error) { return measure("/") }

func measure(root string) (Size, error) {
	cpus, err := os.ReadFile(filepath.Join(root, "proc/cpuinfo"))
	if err != nil {
		return Size{}, err
	}
	memory, err := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	if err != nil {
		return Size{}, err
	}
	var s Size
	for line := range strings.Lines(string(cpus)) {
		if key, _, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "processor" {
			s.CPUs++
		}
	}
	for line := range strings.Lines(string(memory)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "MemTotal:" {
			kib, _ := strconv.Atoi(fields[1])
			s.Memory = kib >> 10
		}
	}
	if s.CPUs == 0 || s.Memory == 0 {
		return s, fmt.Errorf("/proc/cpuinfo and /proc/meminfo do not tell this computer's processors and memory")
	}
	return s, nil
}
