package symptom

// hostCauses are what a machine itself lacks or forbids.
var hostCauses = []Symptom{
	{
		ID:      SwapEnabled,
		Meaning: "Swap is on, and the kubelet does not start with it.",
		Hint: "`swapoff -a` and remove the swap line from /etc/fstab (or `systemctl mask swap.target`), `systemctl restart kubelet`; " +
			"or configure failSwapOn: false.",
		Sources:    []string{"kubernetes/kubeadm#610"},
		Repairable: true,
	},
	{
		ID:      KernelPrereqMissing,
		Meaning: "Kernel settings that pods need are off: br_netfilter is not loaded or forwarding is disabled.",
		Hint: "`modprobe br_netfilter overlay`, `sysctl -w net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-iptables=1`; make both " +
			"last in /etc/modules-load.d and /etc/sysctl.d.",
		Sources:    []string{"digitalrebar/provision-content#106"},
		Repairable: true,
	},
	{
		ID:      CgroupControllerMissing,
		Meaning: "A cgroup controller that the kubelet or runtime needs is not there.",
		Hint: "`cat /proc/cgroups /sys/fs/cgroup/cgroup.controllers`; on a Raspberry Pi add `cgroup_enable=memory cgroup_memory=1` " +
			"to the kernel's command line and reboot; in a container delegate the controllers.",
		Sources: []string{"kubernetes/kubernetes#94329", "kubernetes/kubernetes#90710"},
	},
	{
		ID:      CgroupV1Unsupported,
		Meaning: "kubelet and kubeadm refuse to run on a host with cgroup v1.",
		Hint: "Boot with cgroup v2 (`stat -fc %T /sys/fs/cgroup` then says cgroup2fs; kernel: systemd.unified_cgroup_hierarchy=1). " +
			"Where that is not yours to choose, in a container for example: set failCgroupV1: false in the cluster's kubelet-config, " +
			"and join with `--ignore-preflight-errors=SystemVerification`.",
		Sources: []string{"kubernetes/kubernetes#134298"},
	},
	{
		ID:      HostToolsMissing,
		Meaning: "A program that kubeadm or kube-proxy needs is not installed.",
		Hint: "Install it: `apt-get install conntrack socat ebtables ethtool iproute2 iptables cri-tools` (dnf: conntrack-tools, " +
			"iproute-tc), then again.",
	},
	{
		ID:      KubeBinariesMissing,
		Meaning: "kubeadm or the kubelet is not installed, or not in the PATH.",
		Hint: "Install kubeadm, kubelet and kubectl of the cluster's minor version from pkgs.k8s.io; with sudo or over SSH use the " +
			"full path (`command -v kubeadm kubelet`).",
	},
	{
		ID:      InsufficientResources,
		Meaning: "The machine has too little CPU or memory for the preflight checks.",
		Hint: "Control planes need two CPUs and 1700 MiB; give the machine more, or for a trial only " +
			"`--ignore-preflight-errors=NumCPU,Mem`.",
	},
	{
		ID:      OutOfMemory,
		Meaning: "The kernel ends processes because memory has run out.",
		Hint:    "`dmesg -T | grep -i oom`, `free -m`: more memory for the machine, or limits for the programs that use it.",
		Sources: []string{"kubernetes/kubeadm#1279"},
	},
	{
		ID:      DiskFull,
		Meaning: "A disk is full or nearly full: the kubelet evicts pods, and files cannot be written.",
		Hint: "`df -h / /var/lib/containerd /var/lib/kubelet /var/lib/etcd` and `df -i`; `crictl rmi --prune`, `journalctl " +
			"--vacuum-size=200M`, or a bigger disk.",
		Sources: []string{"kubernetes/kubernetes#74169"},
	},
	{
		ID:      ReadOnlyFilesystem,
		Meaning: "A path that must be written is on a read-only file system.",
		Hint: "`findmnt -T PATH` and `dmesg | grep -i remount`: repair and remount it (`mount -o remount,rw MOUNT`), or move the " +
			"path (flex volumes: controllerManager extraArgs flex-volume-plugin-dir).",
		Sources: []string{"kubernetes/kubeadm#2031"},
	},
	{
		ID:      SELinuxDenied,
		Meaning: "SELinux denies a component access to its files.",
		Hint: "`ausearch -m AVC -ts recent`; `restorecon -Rv /var/lib/kubelet /etc/kubernetes /var/lib/etcd /opt/cni`, install " +
			"container-selinux; `setenforce 0` tells whether it was that.",
		Sources: []string{"kubernetes/kubeadm#279"},
	},
}
