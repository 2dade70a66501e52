package reader

import "k8slab/lab/symptom"

// kubeletMessages are from the kubelet, kube-proxy, kube-controller-manager and kube-apiserver of Kubernetes 1.9 to 1.35.
var kubeletMessages = map[symptom.ID][]pattern{
	symptom.AdvertiseAddressWrong: proves(
		"bad --node-ip", "nodeIP must be a valid IP address", "failed to validate secondaryNodeIP", "can't get ip address of node",
		"failed to get node address from cloud provider that matches ip", "pass an explicit `--node-ip` to kubelet to fix this",
		"dual-stack --node-ip", "Unable to find suitable network address", "Error determining service IP ranges",
		"must be specified when*bind-address",
	),
	symptom.APIServerUnreachable: proves(
		"Error waiting for apiserver to come up", "timed out waiting to connect to apiserver",
		"failed to contact API server when waiting for CSINode publishing", "Failed to wait until node is registered",
		"failed to renew lease*dial tcp",
	),
	symptom.BootstrapKubeconfigMissing: proves(
		"unable to load TLS certificates from existing bootstrap client config",
		"unable to load TLS configuration from existing bootstrap client config",
		"unable to read TLS certificates from existing bootstrap client config", "error reading existing bootstrap kubeconfig",
		"so it can not be used as the currently selected cert/key", "into cert/key pair", "failed to run Kubelet: invalid kubeconfig",
		"invalid configuration: no configuration has been provided", "bootstrap kubeconfig*no such file",
	),
	symptom.CertificateExpired: together(
		mayShow("since a valid client cert was found"),
		proves(
			"one of the certificates for the CSR has expired", "certificate rotation detected*expired", "client certificate has expired",
		),
	),
	symptom.CgroupControllerMissing: proves(
		"has some missing controllers", "missing cgroup pids support", "due to missing cpu.cfs", "missing cgroup memory support",
		"cannot read cgroup controllers", "could not read controllers for cgroup", "cgroup-root*doesn't exist",
		"failed to detect if CPU cgroup cpu.cfs", "cpu and memory cgroup hierarchy not unified", "root container*doesn't exist",
		"cgroup is not configured properly", "cgroup is not config properly", "failed to create top level*QOS cgroup",
		"failed to update top level*QOS cgroup", "error validating root container", "failed to create kubepods cgroup",
		"Failed to create cgroup", "unsupported cgroup version", "failed to apply resource limits on container",
		"failed to convert CPU quota as integer for cgroup", "cgroup subsystem*not mounted", "cgroup*no longer available",
	),
	symptom.CgroupDriverMismatch: proves("runtime returned an unknown cgroup driver", "error converting cgroup name*to systemd format"),
	symptom.CNINotInitialized: proves(
		"didn't find compatible CNI plugin", "Network plugin cni not found", "CNI config list*has no networks",
		"network plugin is not ready", "no network status*cni", "cni conf dir is removed",
	),
	symptom.CNIPluginBinaryMissing: proves("could not locate kubenet required CNI plugins", "no plugin name provided*cni",
		"failed to locate*/opt/cni/bin"),
	symptom.ControlPlaneCrashloop: proves(
		"couldn't parse as pod", "Could not process manifest file", "Error: invalid authentication config",
		"error while building transformers*", "error in determining*apiserver", "service-account-issuer is a required flag",
		"service-account-signing-key-file*required", "Error: error loading config file*encryption", "failed to start kube-apiserver",
		"audit*policy*no such file",
	),
	symptom.ControllerManagerFailing: proves("controller_manager.go*error running controllers", "error starting*controller-manager"),
	symptom.CSRNotApproved:           proves("TLS handshake error*no certificate available", "certificate request was not approved"),
	symptom.HostToolsMissing: proves(
		"iptables binary was not found", "failed to locate iptables", "unable to find iptables-restore", "exec: socat", "exec: nsenter",
		"ipset: executable file not found", "exec: ipset", "modprobe: executable file not found", "ebtables: executable file not found",
		"mount.nfs: not found", "error executing*executable file not found in $PATH*iptables",
	),
	symptom.ImagePullFailure: proves(
		"because of no progress for", "trying and failing to pull image", "couldn't parse image reference", "failed to inspect image",
		"SignatureValidationFailed", "pulling from host*failed", "cancel pulling image*no progress", "no basic auth credentials",
		"failed to fetch oauth token", "failed to fetch anonymous token", "failed to authorize: failed to fetch", "invalid decoded auth",
		"content digest*not found", "unexpected status code [manifests", "failed to pull and unpack", "failed commit on ref",
		"missing schema 1 manifest", "not support for schema 1 manifests", "media type*is no longer supported", "failed to unpack image",
	),
	symptom.InsufficientResources: proves(
		"invalid Node Allocatable configuration", "is larger than total node memory", "Node didn't have enough resource", "OutOfcpu",
		"0/*nodes are available: *Insufficient",
	),
	symptom.KernelPrereqMissing: except(proves(
		"Failed to ensure that nat table exists", "Failed to ensure that nat chain",
		"Failed to ensure that*chain*exists: error creating chain", "Failed to ensure that filter table",
		"error creating chain*exit status 3", "Updating kernel flag failed", "Failed to list IPVS destinations",
		"IPVS proxier will not be used because", "error getting ipset version", "ipvs kernel modules*not loaded",
		"Failed to load kernel module*ip_vs", "failed to enable forwarding", "IPv6*not enabled*kernel",
		"conntrack*kernel module*not loaded", "failed to open config*boot/config",
	), "CANARY", "ip6tables"),
	symptom.KubeProxyCrash: proves(
		"Failed to list IPVS destinations*fatal", "kube-proxy*failed complete", "Error: failed complete",
		"unable to get NodeIP*kube-proxy", "proxier*panic", "conntrack*nf_conntrack_max*no such file", "clusterCIDR*no matching",
		"can't use ipvs proxier", "can't use the IPTables proxier", "can't use the nftables proxier",
		"failed to start proxy healthz*address", "kube-proxy*unable to load in-cluster", "iptables-restore: unable to initialize table",
	),
	symptom.KubeletFlagRemoved: proves(
		"but built-in cloud providers are disabled", "failed to load kubelet dropin file", "failed to merge kubelet configs",
		"failed to merge drop-in", "feature gate must be enabled in order to use the", "unsupported CRI runtime:",
		"the DynamicKubeletConfig feature gate", "must begin with an allowed prefix", "--kube-reserved value failed to parse",
		"--system-reserved value failed to parse", "--qos-reserved value failed to parse", "invalid configuration: *(--",
		"failed to parse --feature-gates", "flag accessed but not defined", "no kind KubeletConfiguration is registered",
		"failed to convert merged config to internal kubelet", "not a valid*kubelet*flag",
	),
	symptom.KubeletNotRunning: proves(
		"kubelet running with insufficient permissions", "Kubelet needs to run as uid", "failed to construct kubelet dependencies",
		"failed to create kubelet:", "Failed to start cAdvisor", "Failed to initialize internal modules", "Failed to start OOM watcher",
		"Failed to create an oomWatcher", "unable to create inotify", "inotify_init: too many open files",
		"Failed to start plugin watcher", "unable to acquire file lock", "Starting health server failed",
		"Failed to start healthz server", "failed to initialize kubelet client", "failed OS init", "invalid root directory",
		"error configuring root directory", "initialize logging:",
	),
	symptom.NodeNameMismatch: proves(
		"error fetching current node name from cloud provider", "error fetching current instance name from cloud provider",
		"cannot modify node", "can only create*with the same name", "is not allowed to modify labels", "node*does not match*certificate",
		"failed to get instances from cloud provider",
	),
	symptom.OutOfMemory: proves("Memory cgroup stats*oom", "memory: usage*limit*failcnt"),
	symptom.PodCIDRNotAssigned: proves(
		"Kubenet needs a PodCIDR", "event didn't contain pod CIDR", "Missing IPv4 address on n.Spec.PodCIDRs",
		"Missing IPv6 address on n.Spec.PodCIDRs", "--allocate-node-cidrs is set but*cluster-cidr", "ClusterCIDR is not",
		"failed to mark cidr", "CIDR set by*out of range", "the node CIDR size is too big", "New CIDR set failed",
		"Pod CIDR*does not contain",
	),
	symptom.PortInUse: proves("failed to create listener: failed to listen on", "failed to start webserver: listen",
		"Failed to listen and serve*bind"),
	symptom.ReadOnlyFilesystem: proves("Remounting file-system read-only"),
	symptom.RuntimeSocketMissing: proves(
		"runtimeNotReady", "RuntimeReady=false", "Container runtime status is nil", "Get runtime version failed",
		"failed to retrieve docker version", "Unable to get docker version", "Failed to execute Info() call to the Docker client",
		"Using empty version for docker client", "docker: network plugin*daemon is not running", "failed to dial*containerd.sock",
		"no grpc connection or services is available", "unable to reconnect to containerd", "server is not initialized yet",
		"GenericPLEG: Unable to retrieve pods*connection refused", "runtime service*not running",
	),
	symptom.RuntimeVersionUnsupported: proves("docker API version is older than", "not all fields are set in VersionResponse"),
	symptom.SwapEnabled: proves(
		"swap configuration is not supported with cgroup v1", "swap configuration under cgroup v1 is unexpected",
		"it is only supported with cgroupv2",
	),
}
