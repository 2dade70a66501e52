package reader

import "k8slab/lab/symptom"

// hostPhrases are of what a machine lacks or forbids.
var hostPhrases = map[symptom.ID][]pattern{
	symptom.SwapEnabled: together(
		endsTheWait("running with swap on is not supported", "[ERROR Swap]", "failed to run Kubelet: *running with swap on"),
		mayShow(
			"[WARNING Swap]", "swap is enabled; production deployments should disable swap", "Swap is on",
			"swap is supported for cgroup v2 only",
		),
	),
	symptom.KernelPrereqMissing: together(
		endsTheWait("[ERROR FileContent--proc-sys-net", "bridge-nf-call-iptables does not exist", "contents are not set to 1"),
		except(proves("failed to load kernel module"), "you can ignore this message"),
		except(proves("do you need to insmod"), "ip6tables", "canary"),
		except(proves("unexpected kernel config"), "CONFIG_CPUSETS", "CONFIG_MEMCG", "CONFIG_CGROUP"),
		except(proves("modprobe: FATAL: Module"), "Module overlay not found", "skip plugin", "skip loading", "configs"),
		proves(
			"/proc/sys/net/bridge/bridge-nf-call-iptables: no such file", "/proc/sys/net/ipv6/conf/*no such file",
			"stat /proc/sys/net/bridge", "Failed to check br_netfilter", "br_netfilter*not found", "IPv4 forwarding is disabled",
			"ip_forward*disabled", "net.ipv4.ip_forward = 0", "required IPVS kernel modules", "overlay*not supported*kernel",
			"vxlan*operation not supported", "failed to mount*overlay*no such device", "[ERROR KernelModule",
			"missing required kernel module", "[ERROR SystemVerification]: missing required kernel", "missing kernel config",
			"kernel release*is unsupported", "the running kernel*does not support", "invalid kernel flag",
			"kernel does not support overlay", "failed to parse kernel config", "can't initialize iptables table",
			"Could not fetch rule set generation id", "Failed to initialize nft: Protocol not supported", "Couldn't load match `",
			"Couldn't load target `", "No chain/target/match by that name", "RTNETLINK answers: Operation not supported",
			"unknown device type*vxlan", "net.bridge.bridge-nf-call-iptables: No such file", "bridge-nf-call-iptables = 0",
			"kernel*too old", "modprobe: ERROR: could not insert", "br_netfilter*not loaded", "ip6_tables*not found",
		),
	),
	symptom.CgroupControllerMissing: proves(
		"unexpected kernel config*CONFIG_CPUSETS", "unexpected kernel config*CONFIG_MEMCG", "unexpected kernel config*CONFIG_CGROUP",
		"missing cgroups:", "missing required cgroup", "CGROUPS_PIDS: missing", "CGROUPS_CPUSET: missing", "CGROUPS_CPU: missing",
		"CGROUPS_HUGETLB: missing*error", "failed to find subsystem mount for required subsystem", "cgroup subsystem*not found",
		"failed to find cgroup", "failed to initialize top level QOS containers", "required cgroup*not enabled",
		"cgroup*memory*not enabled", "cannot enter cgroupv2*with domain controllers", "root cgroup*doesn't have*controller",
		"controller*is not available", "failed to build map of initial containers*cgroup", "openat2 /sys/fs/cgroup*no such file",
		"mountpoint for*not found", "cgroup*devices*not found", "Unit kubepods.slice*not loaded", "unable to apply cgroup configuration",
		"failed to set supported cgroup subsystems", "memory cgroup*disabled", "invalid kernel cgroup",
		"cgroup mountpoint does not exist", "cgroup*missing paths", "has some missing paths",
		"cgroups: cannot find cgroup mount destination", "cgroups: cannot found cgroup mount destination",
		"no cgroup mount found in mountinfo", "cgroup.controllers: no such file", "Your kernel does not support memory limit",
		"does not support cgroup memory", "No memory limit support", "memory.limit_in_bytes: no such file",
		"cpu.cfs_quota_us: no such file", "cpuset.cpus: no such file", "memory.max: no such file", "cgroup_enable=memory",
		"CONFIG_MEMCG: not set", "CONFIG_CPUSETS: not set", "CONFIG_CGROUP_PIDS: not set", "CONFIG_CFS_BANDWIDTH: not set*error",
		`error mounting "cgroup"`, "cgroup*memory*missing", "memory cgroup is not", "Failed to get the kubelet's cgroup*: mountpoint",
		"cgroup*not mounted", `failed to get cgroup stats for "/"*no such`, "cgroup.subtree_control",
		"Cannot set property TasksAccounting", "no subsystem for mount", "runc doesn't work on cgroups v2",
		"failed to create container for [kubepods", "kubepods.slice already exists", "failed to create container for [kubelet",
		"mkdir /sys/fs/cgroup*no such file",
	),
	symptom.CgroupV1Unsupported: together(
		proves(
			"configured to not run on a host using cgroup v1", "cgroup v1 is not supported", "[ERROR SystemVerification]: cgroups v1",
			"cgroups v1 support is*error", "cgroup v1*unsupported", "cgroups v1*is unsupported", "does not support cgroup v1",
		),
		mayShow(
			"failCgroupV1", "cgroups v1 support is in maintenance mode", "cgroup v1 support is in maintenance mode",
			"cgroups v1 support is deprecated", "[WARNING SystemVerification]: cgroups v1",
		),
	),
	symptom.HostToolsMissing: together(
		endsTheWait("[ERROR FileExisting-"),
		proves(
			"conntrack: executable file not found", "iptables: executable file not found", "ethtool: executable file not found",
			"socat not found\n", "crictl: executable file not found", "conntrack not found in system path",
			"crictl not found in system path", "iptables not found in system path", "ip not found in system path",
			"mount: executable file not found", "nsenter: executable file not found", `exec: "conntrack"`, `exec: "iptables"`,
			`exec: "crictl"`, "unable to do port forwarding: socat not found", "crictl: command not found",
			"runc: executable file not found", "conntrack: command not found", "tc: executable file not found",
			"iptables-save: executable file not found",
		),
	),
	symptom.KubeBinariesMissing: together(
		endsTheWait(
			"kubeadm: not found", "kubeadm: command not found", "kubelet: command not found", "kubelet: not found", "bash: kubeadm",
			"kubeadm: No such file or directory", "Unit kubelet.service not found", "Unit kubelet.service could not be found",
			"kubelet.service*not-found", `exec: "kubelet": executable file not found`, "exec: kubeadm: executable file not found",
			"No such file or directory: 'kubeadm'", "No such file or directory: b'kubeadm'", "kubelet not found in system path",
			"Failed to execute /usr/bin/kubelet", "Failed at step EXEC spawning /usr/bin/kubelet", "Unable to locate package kubeadm",
			"No package kubeadm available", "Unable to locate executable*kubelet", "kubelet*status=203/EXEC",
			"No match for argument: kubeadm", "No match for argument: kubelet", "Unable to locate package kubelet",
			"No package kubelet available", "Package kubeadm is not available", "Package 'kubeadm' has no installation candidate",
			"Package 'kubelet' has no installation candidate", "Unit kubelet.service failed to load: No such file",
			"Could not find the requested service kubelet", "No package matching 'kubelet", "No package matching 'kubeadm",
			"No such file or directory: b'/usr/*bin/kubeadm'", "No such file or directory: '/usr/*bin/kubeadm'",
			"Unit file kubelet.service does not exist", "Failed to start kubelet.service: Unit", "unable to get kubelet version",
			"couldn't get kubelet version", "cannot execute binary file: Exec format error", "kubeadm: cannot execute",
			"Failed to locate executable /usr/bin/kubelet",
		),
		except(endsTheWait("code=exited, status=203/EXEC"), "containerd", "docker", "crio", "haproxy", "keepalived"),
		proves(
			"held broken packages", "kubeadm : Depends:", "kubelet : Depends:", "Held packages were changed and -y was used",
			"Nothing provides kube", "requires kubelet", "requires kubernetes-cni",
		),
	),
	symptom.InsufficientResources: together(
		endsTheWait(
			"[ERROR NumCPU]", "the number of available CPUs*is less than the required", "[ERROR Mem]",
			"the system RAM*is less than the minimum", "is less than the minimum 1700 MB", "nodes are available*Insufficient cpu",
			"nodes are available*Insufficient memory", "is less than the required 2", "number of available CPUs 1",
		),
		proves(
			"memory allocation*is less than the recommended minimum", "does not leave room for system overhead",
			"Amount of Memory: At least", "[FAIL] Number of CPUs", "[FAIL]*CPU cores",
		),
	),
	symptom.OutOfMemory: together(
		proves(
			"OOMKilled", "oom_reaper: reaped process", "oom_kill_process", "mem_cgroup_out_of_memory", "SystemOOM", "Killed process",
			"killed by the OOM killer", "out of memory", "cannot allocate memory", "NodeHasInsufficientMemory", "MemoryPressure True",
			"attempting to reclaim memory", "The node was low on resource: memory", "TaskOOM event", "OOM victim",
			"Insufficient memory to", "oom_score_adj*killed", "oom-kill", "killed due to OOM", "Memory pressure*evict",
		),
		mayShow("exit code 137", "with code 137", "exitCode: 137", "status=137"),
	),
	symptom.DiskFull: together(
		except(proves("out of disk"), "SufficientDisk", "OutOfDisk False"),
		proves(
			"no space left on device", "NodeHasDiskPressure", "DiskPressure True", "Taints: node.kubernetes.io/disk-pressure",
			"untolerated taint {node.kubernetes.io/disk-pressure", "had taint {node.kubernetes.io/disk-pressure",
			"had condition: [DiskPressure]", "node has conditions: [DiskPressure", "low on resource: ephemeral-storage",
			"low on resource: imagefs", "low on resource: nodefs", "FreeDiskSpaceFailed",
			"failed to garbage collect required amount of images", "EvictionThresholdMet", "attempting to reclaim*ephemeral-storage",
			"attempting to reclaim imagefs", "attempting to reclaim nodefs", "Disk usage on image filesystem is over the high threshold",
			"disk usage on image filesystem is at", "must evict pod(s) to reclaim ephemeral-storage", "database space exceeded",
			"alarm:NOSPACE", "KubeletHasDiskPressure", "Disk quota exceeded", "100% /\n", "100% /var", "inode*exhausted",
			"wrote 0 bytes freed", "ImageGCFailed*freed", "Image garbage collection failed*required amount", "KubeletOutOfDisk",
			"OutOfDisk True", "DiskPressure=True", "Threshold quantity*imagefs", "eviction manager: must evict", "running out of disk",
			"disk is full", "Disk full", "out of space", "not enough space", "no free space", "Filesystem*100%", "etcdserver: no space",
		),
		// A starting etcd lists its settings, this one among them.
		except(proves("quota-backend-bytes"), "starting an etcd server"),
	),
	symptom.ReadOnlyFilesystem: except(proves(
		"read-only file system", "unmounted volumes=[flexvolume-dir]", "Remounting filesystem read-only", "EXT4-fs error*remount",
		"mounted read-only", "Errno 30",
	), "nf_conntrack", "conntrack", "hashsize"),
	symptom.SELinuxDenied: together(
		proves(
			"type=AVC", "SELinux is preventing", "SELINUX_ERR", "scontext=system_u", "selinux*denied", "selinux*permission denied",
			"relabel*operation not permitted", "failed to set selinux label", "SELinux*Enforcing*permission denied",
			"lsetxattr*permission denied", "failed to set file label", "write /proc/self/attr/keycreate: permission denied",
			"error setting label", "apparmor=DENIED", "write /proc/thread-self/attr/keycreate", "SELinux: *denied", "setenforce 0*fix",
			"denied*tcontext", "container-selinux*requires", "selinux policy",
		),
		except(proves("open /etc/kubernetes/*: permission denied", "/var/lib/etcd*permission denied"), "admin.conf"),
	),
}
