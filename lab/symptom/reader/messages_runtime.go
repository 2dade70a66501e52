package reader

import "k8slab/lab/symptom"

// runtimeMessages are from containerd 1.3 to 2.1, runc, the reference network plugins and Flannel.
var runtimeMessages = map[symptom.ID][]pattern{
	symptom.CgroupControllerMissing: proves(
		"cgroup_writable` is only supported on cgroup v2", "loading cgroup for*failed", "cgroup: cannot find",
		"error setting cgroup config for procHooks process", "no such directory*cgroup", "failed to write*cgroup.procs",
		"cpuset.mems: no such file", "failed to get cgroup root*no such", "pids.max*no such", "cgroup_memory=1",
	),
	symptom.CNINotInitialized: proves("no plugin configs found", "no net configuration with name",
		"failed to read plugin config files in"),
	symptom.CNIPluginBinaryMissing: proves("no plugin paths provided", "no paths provided\n", "invalid plugin name:",
		"exec: flannel: executable", "neither*cni/bin"),
	symptom.CNIStaleConfig: proves(
		"already exists but is not a bridge", "already exists with incompatible configuration",
		"already exists with incompatible attributes", "failed to find a unique veth name", "is not available in range set",
		"is subnet's gateway", "range set*overlaps with", "error parsing configuration list", "no converter for CNI result version",
		"cached network*config has wrong kind", "failed to parse plugin config", "Bridge interface*doesn't match",
		"is not compatible with the Etcd network config", "configuration version*not supported", "failed to parse prevResult",
		"multiple network configs found",
	),
	symptom.CRIPluginDisabled: proves(
		"unable to load CRI image service plugin dependency", "unable to load CRI runtime service plugin dependency",
		"Failed to run CRI service", "cni.bin_dir` and `cni.bin_dirs` cannot be set at the same time",
		"configs.tls` cannot be set when `config_path`", "default_runtime_name` is empty", "unknown runtime handler*containerd config",
		"failed to get sandbox controllers from plugins", "snapshotter*was not found", "could not find snapshotter",
		"conflicting definitions: configuration includes both", "only works for runtime", "failed to find runtime handler",
		"unsupported config version", "expected containerd config version equal to or less", "containerd config version*is not supported",
	),
	symptom.DiskFull: proves("failed to create snapshot*no space", "failed to mkdir*no space"),
	symptom.DuplicateMachineIdentity: proves(
		"in DADFAILED state", "machine-id*are identical", "machine-id*all the same", "machine-id*is the same", "same machine id",
		"the same UUID*VM", "MAC address*the same", "share the same MAC", "same MAC on", "identical product_uuid", "identical machine id",
	),
	symptom.FlannelSubnetEnvMissing: proves("Failed to write subnet file", "failed to load flannel subnet.env"),
	symptom.HostToolsMissing: proves(
		"failed to setup iptables*binary was not found", "iptables-restore binary was not found",
		"unable to run iptables-restore*not found",
	),
	symptom.KernelPrereqMissing: proves(
		"does not support d_type", "failed to mount overlay: invalid argument", "require kernel version greater than or equal to",
		"Failed to setup IPTables. Error on creating the chain", "failed to create ipip interface: operation not supported",
		"could not create wireguard interface: operation not supported", "failed to bootstrap IPTables",
		"Failed to ensure iptables rules", "overlayfs*not supported over", "failed to enable IPv6 for interface",
		"mount overlay*failed: no such device", "driver not supported*overlay",
	),
	symptom.NetworkPluginPodsFailing: proves(
		"failed to register network:", "timeout contacting kube-api, failed to patch node", "error retrieving pod spec for",
		"failed to read net conf", "error parsing subnet config", "Error registering network", "Error fetching backend",
		"fail to create kubernetes config", "unable to initialize client: *kube", "couldn't lookup interface",
		"Found default route but could not determine interface", "Unable to find default route",
		"No IPv4 address found for given interface", "No interface with given IP found", "is not supported by host-gw backend",
		"env variables POD_NAME and POD_NAMESPACE must be set", "error waiting for nodeController to sync state",
		"Failed to get node for backend data", "please define a correct Network parameter in the flannel config",
		"network is too small. Minimum useful network prefix", "failed to configure device flannel",
		"failed to ensure address of interface", "out of subnets\n", "Max retries reached trying to acquire a subnet",
		"isn't an ipip mode device", "node name not present in pod spec",
	),
	symptom.PodCIDRNotAssigned: proves("node*pod cidrs should be", "doesn't contain*PodCIDR of the", "Error turning node*to lease"),
	symptom.RuntimeSocketMissing: proves(
		"failed to create containerd client", "Connect containerd service*failed", "failed to load TOML", "invalid plugin key URI",
		"invalid required plugin URI", "containerd: timeout waiting", "containerd.service: Start operation timed out",
		"failed to connect to containerd", "Error getting listener: *containerd", "docker.socket: Failed", "dockerd*failed to start",
		"crio: fatal", "level=fatal*cri-o", "failed to dial /run/containerd", "no connector available",
	),
	symptom.SandboxImageMisconfigured: proves("failed to parse sandbox image from config", "failed to inspect sandbox image",
		"detected sandbox image is empty"),
	symptom.SELinuxDenied: proves(
		"apparmor profile not found", "failed to generate apparmor spec", "apparmor is not supported", "unable to apply apparmor profile",
		"selinux relabel", "failed to relabel", "failed to set process label", "the format of 'level'*is not correct",
	),
}

// hostMessages are from systemd, cloud-init, package managers, the kernel, libvirt, SSH and the tools that drive kubeadm.
var hostMessages = map[symptom.ID][]pattern{
	symptom.ClockSkew: proves("RTC time*differs", "Time has been changed*kube", "clocks differ by"),
	symptom.DiskFull: proves(
		"File system is full", "write error: disk", "Free disk space*less than", "usage is at 100%", "has reached*inotify*no space left",
		"100% /run", "100% /home",
	),
	symptom.HostnameInvalid: proves("Could not set property: Invalid static hostname"),
	symptom.KernelPrereqMissing: together(
		proves(
			"modprobe: module*not found in modules.dep", "Operation not supported*br_netfilter", "Failed to start Load Kernel Modules",
			"bridge-nf-call-iptables is an unknown key",
		),
		// The module may be built into the kernel, or loaded by the host of a container.
		mayShow("Failed to find module 'br_netfilter'", "Failed to find module 'overlay'"),
	),
	symptom.KubeBinariesMissing: proves(
		"Package kubelet-*not available", "No package kubelet", "No package kubeadm", "Unable to find a match: kubeadm",
		"Unable to find a match: kubelet", "Failed at step EXEC spawning*kubelet", "Unable to locate package kubectl",
		"kubelet: No such file or directory", "which: no kubeadm", "which: no kubelet", "GPG error*kubernetes",
		"kubernetes-xenial Release' does not have a Release file", "Version '*' for 'kubelet' was not found",
		"Version '*' for 'kubeadm' was not found",
	),
	symptom.MachineNotRunning: proves("error: Failed to start domain", "guest panicked", "domain is shut off", "VM is powered off",
		"VM must be running"),
	symptom.MachinePaused: proves("Domain*suspended", "guest is paused", "status: suspended", "state: suspended", "is in state paused"),
	symptom.NodeUnreachable: proves(
		"ssh: Could not*connect", "Connection closed by*port 22", "Connection reset by*port 22", "kex_exchange_identification",
		"ssh_exchange_identification", "port 22: Connection timed out", "port 22: No route to host", "port 22: Connection refused",
		"Timeout when waiting for*:22", "Timed out waiting for SSH", "Warning: Connection timeout. Retrying",
	),
	symptom.OutOfMemory: proves(
		"page allocation failure", "killed by signal 9 (oom)", "oom_kill*memcg", "MemoryPressure=True", "Evicted*low on resource: memory",
	),
	symptom.PortInUse: proves("bind() failed (98", "cannot bind socket", "Address in use", "starting proxy*cannot bind"),
	symptom.SELinuxDenied: proves(
		"setenforce enforcing", "clashing with selinux", "selinux is blocking", "because of selinux", "caused by selinux",
		"SELinux status: enforcing*denied", "setroubleshoot*SELinux", "audit(*avc:", "AVC*denied", "apparmor*DENIED*kube",
	),
	symptom.SwapEnabled: proves(
		"swapoff*required", "Swap must be disabled", "disable swap first", "swap should be disabled", "please disable swap",
		"swap is not disabled", "[FAIL] swap",
	),
	symptom.ProxyInterference: together(
		mayShow(
			"behind the corporate proxy", "behind a corporate proxy", "behind a proxy", "corporate firewall and proxy", "http_proxy=",
		),
		proves(
			"ProxyError(", "Tunnel connection failed: 403", "Tunnel connection failed: 407", "Proxy tunneling failed",
			"proxy server*refused", "Cannot connect to proxy", "proxy: unknown",
		),
	),
	symptom.FirewallBlocked: proves(
		"stopped the firewalld", "stopped firewalld", "stopping firewalld", "disabling firewalld", "disabled firewalld",
		"disable firewalld and", "disabled the firewall", "disabling the firewall", "not permitting incoming traffic",
		"not allowed in the security group", "security group did not allow", "port is blocked", "ports are blocked", "ports were blocked",
		"blocked by firewall", "ufw*deny", "packet*dropped by*firewall", "Packet filtered", "admin-prohibited",
		"connect: permission denied\n", "6443/tcp*filtered",
	),
}
