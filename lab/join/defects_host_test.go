package join

import (
	"strings"

	"k8slab/lab/symptom"
)

// defect is one thing that is broken, and the one check that must say so.
type defect struct {
	name         string
	controlPlane bool
	shape        clusterShape
	breaks       func(*scene)
	id           CheckID
	result       Result
	symptom      symptom.ID
	evidence     string // a part of it
}

var hostDefects = []defect{
	{"no host name", false, clusterShape{}, func(s *scene) { s.write("/proc/sys/kernel/hostname", "\n") }, "hostname", Blocked, symptom.HostnameInvalid, "no host name"},
	{"host name of nobody", false, clusterShape{}, func(s *scene) { s.write("/proc/sys/kernel/hostname", "localhost\n") }, "hostname", Blocked, symptom.HostnameInvalid, "localhost"},
	{"host name with underscore", false, clusterShape{}, func(s *scene) { s.target.Name = "my_node" }, "hostname", Blocked, symptom.HostnameInvalid, "my_node"},
	{"upper case is lowered", false, clusterShape{}, func(s *scene) { s.write("/proc/sys/kernel/hostname", "StorageNode\n") }, "hostname", OK, "", "storagenode"},
	{"no machine-id", false, clusterShape{}, func(s *scene) { s.write("/etc/machine-id", "\n") }, "machine-id", Blocked, symptom.DuplicateMachineIdentity, "empty"},
	{"odd machine-id", false, clusterShape{}, func(s *scene) { s.write("/etc/machine-id", "xyz\n") }, "machine-id", Blocked, symptom.DuplicateMachineIdentity, "xyz"},
	{"cloned machine-id", false, clusterShape{}, func(s *scene) { s.target.Known = map[string]string{"w1": testMachineID, "w2": testMachineID} },
		"machine-id", Blocked, symptom.DuplicateMachineIdentity, "w2 has the same"},
	{"its own machine-id", false, clusterShape{}, func(s *scene) { s.target.Known = map[string]string{"w1": testMachineID, "w2": "f" + testMachineID[1:]} },
		"machine-id", OK, "", testMachineID},
	{"empty product_uuid", false, clusterShape{}, func(s *scene) {
		s.write("/sys/class/dmi/id/product_uuid", strings.Repeat("0", 8)+"-0000-0000-0000-"+strings.Repeat("0", 12))
	},
		"product-uuid", Warn, symptom.DuplicateMachineIdentity, "00000000"},
	{"no firmware", false, clusterShape{}, func(s *scene) { s.remove("/sys/class/dmi") }, "product-uuid", OK, "", "none"},
	{"little memory", true, clusterShape{}, func(s *scene) { s.write("/proc/meminfo", "MemTotal: 1000000 kB\n") }, "memory", Blocked, symptom.InsufficientResources, "976 MB"},
	{"little memory, container", true, clusterShape{}, func(s *scene) {
		s.write("/proc/meminfo", "MemTotal: 1000000 kB\n")
		s.write("/run/systemd/container", "lxc-libvirt")
	}, "memory", Warn, symptom.InsufficientResources, "976 MB"},
	{"little memory, ignored", true, clusterShape{}, func(s *scene) {
		s.write("/proc/meminfo", "MemTotal: 1000000 kB\n")
		s.target.Ignore = []string{"Mem"}
	}, "memory", Warn, symptom.InsufficientResources, "976 MB"},
	{"tiny worker", false, clusterShape{}, func(s *scene) { s.write("/proc/meminfo", "MemTotal: 400000 kB\n") }, "memory", Warn, symptom.InsufficientResources, "390 MB"},
	{"one processor", true, clusterShape{}, func(s *scene) { s.write("/sys/devices/system/cpu/online", "0\n") }, "cpu", Blocked, symptom.InsufficientResources, "1 processor"},
	{"one processor, worker", false, clusterShape{}, func(s *scene) { s.write("/sys/devices/system/cpu/online", "0\n") }, "cpu", OK, "", "1"},
	{"disk full", false, clusterShape{}, func(s *scene) {
		s.Space = func(string) (Space, error) { return Space{Bytes: 100 << 30, FreeBytes: 5 << 30}, nil }
	}, "disk", Blocked, symptom.DiskFull, "5 %"},
	{"read-only", false, clusterShape{}, func(s *scene) {
		s.Space = func(string) (Space, error) { return Space{Bytes: 100 << 30, FreeBytes: 50 << 30, ReadOnly: true}, nil }
	}, "disk", Blocked, symptom.ReadOnlyFilesystem, "read-only"},
	{"swap on", false, clusterShape{}, func(s *scene) { s.write("/proc/swaps", swapsOn) }, "swap", Fixable, symptom.SwapEnabled, "/dev/vda5"},
	{"swap on, allowed", false, clusterShape{}, func(s *scene) {
		s.write("/proc/swaps", swapsOn)
		s.cluster.kubelet("failSwapOn: false\n")
	}, "swap", OK, "", "allows"},
	{"swap on, container", false, clusterShape{}, func(s *scene) {
		s.write("/proc/swaps", swapsOn)
		s.write("/run/systemd/container", "lxc-libvirt")
	}, "swap", Blocked, symptom.SwapEnabled, "cannot"},
	{"swap on, ignored", false, clusterShape{}, func(s *scene) {
		s.write("/proc/swaps", swapsOn)
		s.target.Ignore = []string{"Swap"}
	}, "swap", Warn, symptom.SwapEnabled, "ignored"},
	{"module not loaded", false, clusterShape{}, func(s *scene) {
		s.remove("/sys/module/br_netfilter", "/proc/sys/net/bridge")
		s.write("/lib/modules/6.1.0-25-amd64/modules.dep", "kernel/net/bridge/br_netfilter.ko: kernel/net/bridge/bridge.ko\n")
	}, "kernel-modules", Fixable, symptom.KernelPrereqMissing, "br_netfilter"},
	{"module built in", false, clusterShape{}, func(s *scene) {
		s.remove("/sys/module/vxlan")
		s.write("/lib/modules/6.1.0-25-amd64/modules.builtin", "kernel/drivers/net/vxlan/vxlan.ko\n")
	}, "kernel-modules", OK, "", ""},
	{"no such module", false, clusterShape{}, func(s *scene) { s.remove("/sys/module/br_netfilter", "/proc/sys/net/bridge") },
		"kernel-modules", Blocked, symptom.KernelPrereqMissing, "no module br_netfilter"},
	{"no such module, container", false, clusterShape{}, func(s *scene) {
		s.remove("/sys/module/br_netfilter", "/proc/sys/net/bridge")
		s.write("/proc/1/environ", "container=lxc-libvirt\x00")
	}, "kernel-modules", Warn, symptom.KernelPrereqMissing, "br_netfilter"},
	{"no vxlan", false, clusterShape{}, func(s *scene) { s.remove("/sys/module/vxlan") }, "kernel-modules", Warn, symptom.KernelPrereqMissing, "vxlan"},
	{"no forwarding", false, clusterShape{}, func(s *scene) { s.write("/proc/sys/net/ipv4/ip_forward", "0\n") }, "sysctls", Fixable, symptom.KernelPrereqMissing, "net.ipv4.ip_forward"},
	{"no memory controller", false, clusterShape{}, func(s *scene) { s.write("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io pids\n") },
		"cgroups", Blocked, symptom.CgroupControllerMissing, "memory"},
	{"cgroup v1 allowed", false, clusterShape{}, func(s *scene) {
		cgroupV1(s)
		s.target.Ignore = []string{"SystemVerification"}
	}, "cgroups", OK, "", "v1"},
	{"cgroup v1 allowed by kubelet alone", false, clusterShape{}, cgroupV1,
		"cgroups", Blocked, symptom.CgroupV1Unsupported, "kubeadm refuses without --ignore-preflight-errors=SystemVerification"},
	{"cgroup v1 and no cluster", false, clusterShape{}, func(s *scene) { cgroupV1(s); s.target = Target{} },
		"cgroups", Warn, symptom.CgroupV1Unsupported, "kubeadm does without --ignore-preflight-errors=SystemVerification"},
	{"cgroup v1 refused", false, clusterShape{}, func(s *scene) { cgroupV1(s); s.cluster.kubelet("cgroupDriver: systemd\n") },
		"cgroups", Blocked, symptom.CgroupV1Unsupported, "refuses"},
	{"cgroup v1, old kubelet", false, clusterShape{}, func(s *scene) {
		cgroupV1(s)
		s.cluster.kubelet("cgroupDriver: systemd\n")
		s.answer("/usr/bin/kubelet --version", "Kubernetes v1.34.1\n")
	}, "cgroups", OK, "", "v1.34.1"},
	{"cgroup v1 without memory", false, clusterShape{}, func(s *scene) {
		cgroupV1(s)
		s.write("/proc/cgroups", "cpuset 1 1 1\ncpu 2 1 1\npids 3 1 1\nmemory 0 1 0\n")
	}, "cgroups", Blocked, symptom.CgroupControllerMissing, "memory"},
	{"no kubeadm", false, clusterShape{}, func(s *scene) { s.remove("/usr/bin/kubeadm") }, "kube-binaries", Blocked, symptom.KubeBinariesMissing, "kubeadm"},
	{"no losetup", false, clusterShape{}, func(s *scene) { s.remove("/usr/bin/losetup") }, "host-tools", Blocked, symptom.HostToolsMissing, "losetup"},
	{"no conntrack for old kubeadm", false, clusterShape{}, func(s *scene) { s.answer("/usr/bin/kubeadm version", "v1.31.14\n") },
		"host-tools", Blocked, symptom.HostToolsMissing, "conntrack"},
	{"kubelet masked", false, clusterShape{}, func(s *scene) {
		s.answer("systemctl show kubelet.service", showUnits(with(kubeletUnit, "LoadState", "masked"), containerdUnit))
	}, "kubelet-unit", Fixable, symptom.KubeletNotRunning, "masked"},
	{"no kubelet unit", false, clusterShape{}, func(s *scene) {
		s.answer("systemctl show kubelet.service", showUnits(with(kubeletUnit, "LoadState", "not-found"), containerdUnit))
	}, "kubelet-unit", Blocked, symptom.KubeBinariesMissing, "no kubelet.service"},
	{"drop-in hidden", false, clusterShape{}, standaloneUnit, "kubelet-unit", Fixable, symptom.KubeletStandalone, "--kubeconfig"},
	{"drop-in lost", false, clusterShape{}, func(s *scene) { standaloneUnit(s); s.remove(packagedDropIn) }, "kubelet-unit", Blocked, symptom.KubeletStandalone, "standalone"},
}

const swapsOn = "Filename\tType\tSize\tUsed\tPriority\n/dev/vda5  partition 998396 0 -2\n"

func cgroupV1(s *scene) {
	s.remove("/sys/fs/cgroup/cgroup.controllers")
	s.write("/proc/cgroups", "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpuset\t1\t9\t1\ncpu\t2\t9\t1\nmemory\t3\t9\t1\npids\t4\t9\t1\n")
}

func standaloneUnit(s *scene) {
	bare := with(with(kubeletUnit, "ExecStart", "{ path=/usr/bin/kubelet ; argv[]=/usr/bin/kubelet ; ignore_errors=no }"), "DropInPaths", localDropInDir+"/10-kubeadm.conf")
	s.answer("systemctl show kubelet.service", showUnits(bare, containerdUnit))
}
