package reader

import "k8slab/lab/symptom"

// podNetworkPhrases show the causes of the same subject in the catalogue.
var podNetworkPhrases = map[symptom.ID][]pattern{
	symptom.CNINotInitialized: together(
		except(proves(
			"reason:NetworkPluginNotReady", "NetworkReady=false", "cni config uninitialized", "cni plugin not initialized",
			"runtime network not ready", "NetworkPluginNotReady", "No networks found in /etc/cni/net.d",
			"Unable to update cni config: no networks found", "Unable to update cni config: no valid networks found",
			"no valid networks found in /etc/cni/net.d", "no network config found in /etc/cni/net.d", "Missing CNI default network",
			"no CNI configuration file in /etc/cni/net.d", "cni network not ready",
			"network plugin is not ready: cni config uninitialized", "network is not ready", "No CNI configuration file in",
			"cni config load failed",
		), "failed to load cni during init", "starting cri plugin", "failed to reload cni configuration after receiving fs change"),
		seldomRight("failed to load cni during init", "cni config load failed: no network config found"),
	),
	symptom.CNIPluginBinaryMissing: together(proves(
		"failed to find plugin*in path", "in path [/opt/cni/bin", "failed to find plugin", "plugin*not found in /opt/cni/bin",
		"/opt/cni/bin/*: no such file or directory", "stat /opt/cni/bin/*no such file", "exec: *flannel*executable file not found",
		"could not find plugin", "in path [/usr/lib/cni", "/opt/cni/bin/*: permission denied", "unable to find*CNI plugin*binary",
	),
		proves(
			"fork/exec /opt/cni/bin/", "exec: \"portmap\": executable", "exec: \"loopback\": executable",
			"exec: \"bridge\": executable", "exec: \"calico\": executable", "/usr/libexec/cni/*: no such file",
			"plugin*not found in path", "neither /opt/cni/bin",
		),
	),
	symptom.CNIStaleConfig: together(proves(
		"already has an IP address different from", "has an IP address different from", "cni0\" already has",
		"failed to set bridge addr", "failed to allocate for range*no IP addresses available in range set",
		"no IP addresses available in range set", "no IP addresses available in network",
		"could not add IP address to \"cni0\": file exists",
		"cannot convert version*to supported", "incompatible CNI versions",
		"multiple CNI config", "conflicting CNI", "more than one CNI config",
		"has been allocated to*duplicate allocation is not allowed", "duplicate allocation is not allowed",
		"network: error getting ClusterInformation: connection is unauthorized", "error getting ClusterInformation",
		"failed to delegate add: failed to set bridge addr", "/etc/cni/net.d/calico-kubeconfig: no such file",
		"plugin type=\"multus\"*not found", "error getting default network*multus", "interface*already exists*vxlan",
		"flannel.1: *file exists", "VTEP*duplicate*flannel.1", "unsupported CNI result version", "conflict*subnet*cni0",
		"error parsing configuration list: unexpected end of JSON input", "Error loading CNI config list file",
		"Error loading CNI config file", "error parsing configuration: missing 'type'", "plugin*does not support config version",
	),
		proves(
			"container veth name provided (eth0) already exists", "failed to add host route",
			"failed to add route*file exists", "could not set bridge's mac", "bridge*already exists",
			"cni0*already exists", "stale*cni", "leftover*cni",
		),
		proves(
			"plugin type=\"calico\"*connection is unauthorized", "multus*No networks found",
		),
	),
	symptom.FlannelSubnetEnvMissing: together(proves(
		"/run/flannel/subnet.env: no such file or directory", "/run/flannel/subnet.env: no such file", "loadFlannelSubnetEnv failed",
	),
		proves(
			"failed to load flannel 'subnet.env' file", "subnet.env: no such file",
		),
	),
	symptom.PodCIDRNotAssigned: together(
		proves(
			"pod cidr not assigned", "podCIDR is not assigned", "CIDRNotAvailable",
			"node*podCIDR*not assigned", "doesn't have PodCIDR", "no podCIDR", "failed to allocate cidr", "range is full",
			"CIDR allocation failed; there are no remaining CIDRs left to allocate",
			"kubenet does not have netConfig. This is most likely due to lack of PodCIDR", "lack of PodCIDR", "PodCIDR*is empty",
			"no remaining CIDRs", "Error registering network: failed to acquire lease", "failed to acquire lease: node*",
			"out of the configured net config", "cluster-cidr*not*contain", "podSubnet*not specified", "node spec.podCIDR*empty",
			"PodCIDR not available", "Spec.PodCIDR not set", "Unsuccessful parsing of cluster CIDR",
			"required IPv4 PodCIDR not available",
			"subnet*specified in the flannel net config doesn't contain*PodCIDR", "flannel net config doesn't contain",
		),
		seldomRight("CIDRAssignmentFailed"), // the controller's write lost to another's, and it tries again: new nodes of healthy clusters have it
	),
	symptom.KubeProxyCrash: together(
		proves(
			"kube-proxy*CrashLoopBackOff", "restarting failed container=kube-proxy", "kube-proxy*0/1 Error",
			"nf_conntrack_max: permission denied", "nf_conntrack_max: read-only file system", "conntrack_max: no such file",
			"proxier*failed to", "failed complete: too many open files", "Can't use the IPVS proxier", "can't use the IPVS proxier",
			"nf_conntrack_hashsize*read-only", "open /sys/module/nf_conntrack/parameters/hashsize",
			"write /sys/module/nf_conntrack", "kube-proxy*ContainerCannotRun", "Back-off restarting failed container kube-proxy",
			"kube-proxy*Exited (", "server.go*] failed complete: ", "Error running ProxyServer", "unable to create proxier",
			"kube-proxy*OOMKilled", "can't set sysctl net/ipv4", "can't set sysctl net/netfilter",
			"proxier.go*Failed to execute iptables-restore", "iptables is not available*proxier",
			"conntrack*operation not permitted*proxy", "kube-proxy*RunContainerError",
		),
		proves(
			"kube-proxy*0/1*CrashLoop", "kube-proxy*0/1*Error", "kube-proxy*ImageInspectError",
			"kube-proxy*CreateContainerError", "Failed to ensure that filter chain", "iptables-restore*failed*proxier",
			"proxier.go*exit status", "kube-proxy*Unhealthy", "unable to initialise ipvs proxier",
			"server.go*] unable to", "error parsing kube-proxy config", "kube-proxy*Back-off restarting",
		),
		proves(
			"Failed to execute iptables-restore", "Error removing pure-iptables proxy rule",
		),
	),
	symptom.NetworkPluginPodsFailing: together(proves(
		"kube-flannel*CrashLoopBackOff", "kube-flannel*0/1 Error", "/var/lib/calico/nodename: no such file",
		"unable to connect to Cilium daemon", "127.0.0.1:6784: connect: connection refused", "calico-node*CrashLoopBackOff",
		"calico-node*Init:CrashLoopBackOff", "calico-node*Init:Error", "calico*Init:CrashLoopBackOff", "cilium*CrashLoopBackOff",
		"cilium*Init:CrashLoopBackOff", "weave-net*CrashLoopBackOff", "canal*CrashLoopBackOff", "tigera-operator*CrashLoopBackOff",
		"antrea-agent*CrashLoopBackOff", "restarting failed container=kube-flannel", "restarting failed container=calico-node",
		"restarting failed container=cilium-agent", "restarting failed container=install-cni", "restarting failed container=weave",
		"kube-router*CrashLoopBackOff", "kube-ovn*CrashLoopBackOff", "multus*CrashLoopBackOff", "calico-node*0/1*Running",
		"BIRD is not ready", "calico/node is not ready", "Failed to create SubnetManager",
		"Failed to find any valid interface to use", "Failed to find interface to use", "Couldn't fetch network config",
		"failed to retrieve subnet lease", "calico-node*Unhealthy", "felix is not live", "Unable to auto-detect an IPv4 address",
		"level=fatal*cilium", "cilium*level=error*Unable to", "calico-node*0/1 Error", "flannel*Init:Error",
		"Error retrieving pod spec for*kube-flannel", "kube-flannel*OOMKilled", "back-off*kube-flannel", "cilium-agent*not ready",
		"Back-off restarting failed container kube-flannel", "Back-off restarting failed container calico",
		"IPAM*conflicting with*calico", "overlaps with existing route", "cilium.sock: connect:", "cilium.sock: no such file",
		"failed to set up pod*network: context deadline exceeded", "netplugin failed with no error message",
		"netplugin failed but error parsing its diagnostic message", "error getting ClusterInformation", "kube-flannel*Unhealthy",
		"calico-kube-controllers*CrashLoopBackOff", "cilium-operator*CrashLoopBackOff",
	), saysItself("plugin type=*failed (add):", "NetworkPlugin cni failed to set up pod"),
		proves(
			"Calico node failed to start", "Unable to access datastore to query", "calico-typha*CrashLoopBackOff",
			"calico-typha*0/1", "flannel*Init:CrashLoopBackOff", "cilium*0/1*Error", "weave-net*Error", "weave-net*1/2",
			"flannel*RunContainerError", "Connection to the datastore is unauthorized",
			"Hit error connecting to datastore", "Calico*Skipping datastore connection test*ERROR",
			"Readiness probe failed: calico", "Liveness probe failed: calico", "Readiness probe failed: *BIRD",
			"level=fatal*subsys=daemon", "felix*panic", "failed to create VXLAN", "coredns*0/1 CrashLoopBackOff",
		),
	),
}
