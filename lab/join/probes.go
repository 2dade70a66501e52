package join

// probes lists the checks that a target asks for, from cause to effect: what is named first among equals is nearer to the cause.
func probes(t Target) []probe {
	list := []probe{
		{id: "hostname", ignore: []string{"hostname"}, run: checkHostname},
		{id: "machine-id", run: checkMachineID},
		{id: "product-uuid", run: checkProductUUID},
		{id: "memory", ignore: []string{"mem"}, run: checkMemory},
		{id: "cpu", ignore: []string{"numcpu"}, run: checkCPU},
		{id: "disk", run: checkDisk},
		{id: "swap", limit: apiLimit + 2*quick, ignore: []string{"swap"}, run: checkSwap, fix: fixSwap},
		{id: "kernel-modules", ignore: []string{"systemverification"}, run: checkModules, fix: fixModules},
		{id: "sysctls", ignore: []string{"filecontent--proc-sys-net-ipv4-ip_forward"}, run: checkSysctls, fix: fixSysctls},
		{id: "cgroups", limit: apiLimit + 2*quick, ignore: []string{"systemverification"}, run: checkCgroups},
		{id: "kube-binaries", run: checkKubeBinaries},
		{id: "host-tools", ignore: []string{"fileexisting-mount", "fileexisting-losetup", "fileexisting-cp", "fileexisting-conntrack"}, run: checkHostTools},
		{id: "kubelet-unit", run: checkKubeletUnit, fix: fixKubeletUnit},
		{id: "cni-plugins", run: checkCNIPlugins, fix: fixCNIPlugins},
		{id: "cni-config", limit: criLimit + grace, run: checkCNIConfig, fix: fixCNIConfig},
		{id: "cri", limit: criLimit + grace, ignore: []string{"cri"}, run: checkCRI, fix: fixCRI},
		{id: "image-filesystem", limit: criLimit + grace, run: checkImageFilesystem, fix: fixCRI},
		{id: "runtime-version", limit: criLimit + grace, ignore: []string{"containerruntimeversion"}, run: checkRuntimeVersion},
		{id: "cgroup-driver", limit: apiLimit + 2*quick, run: checkCgroupDriver, fix: fixCgroupDriver},
		{id: "leftovers", run: checkLeftovers, fix: fixLeftovers},
		{id: "ports", run: checkPorts},
		{id: "firewall", run: checkFirewall},
	}
	if t.Address != "" {
		list = append(list, probe{id: "address", run: checkAddress})
	}
	if t.ControlPlane {
		list = append(list, probe{id: "etcd-disk", run: checkEtcdDisk})
	}
	if t.Endpoint != "" {
		list = append(list, endpointProbes(t)...)
	}
	return append(list, probe{id: "images", limit: apiLimit + 2*quick, run: checkImages})
}

// endpointProbes are the checks that talk to the cluster or are about talking to it.
func endpointProbes(t Target) []probe {
	const (
		first = apiLimit + grace // what is known with the first answer
		whole = apiLimit + 2*quick
	)
	list := []probe{
		{id: "proxy", ignore: []string{"httpproxy"}, run: checkProxy},
		{id: "endpoint-name", limit: first, run: checkEndpointName},
		{id: "endpoint-connect", limit: first, run: checkEndpointConnect},
		{id: "clock", limit: first, run: checkClock},
		{id: "ca-hash", limit: whole, run: checkCAHash},
		{id: "endpoint-tls", limit: whole, run: checkEndpointTLS},
		{id: "endpoint-health", limit: first, run: checkEndpointHealth},
	}
	if t.Token != "" {
		list = append(list, []probe{
			{id: "bootstrap-token", limit: whole, run: checkToken},
			{id: "version", limit: whole, ignore: []string{"kubeletversion", "kubernetesversion"}, run: checkVersion},
			{id: "node-name", limit: whole, run: checkNodeName},
		}...)
	}
	if t.ControlPlane {
		list = append(list, []probe{
			{id: "control-plane-endpoint", limit: whole, run: checkControlPlaneEndpoint},
			{id: "certificate-key", limit: whole, run: checkCertificateKey},
		}...)
	}
	if t.ControlPlane && len(t.Peers) > 0 {
		list = append(list, probe{id: "etcd-peers", run: checkPeers})
	}
	return list
}
