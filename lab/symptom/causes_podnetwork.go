package symptom

// podNetworkCauses are the network add-on, its plugins, and kube-proxy.
var podNetworkCauses = []Symptom{
	{
		ID: CNINotInitialized,
		Meaning: "The node has no pod network configuration: the network add-on is not installed, does not run here, or the runtime " +
			"has not read its file.",
		Hint: "`kubectl -n kube-flannel get pods -o wide` (or your add-on's namespace), `ls /etc/cni/net.d`; install or repair the " +
			"add-on; when the file is there, `systemctl restart containerd`.",
		Sources:    []string{"kubernetes/kubernetes#43815", "containerd/containerd#11715", "kubernetes/kubernetes#108353"},
		Repairable: true,
	},
	{
		ID:      CNIPluginBinaryMissing,
		Meaning: "A network plugin's program is missing from /opt/cni/bin.",
		Hint: "`ls /opt/cni/bin`; install it: package kubernetes-cni, or unpack containernetworking/plugins' release there (flannel: " +
			"the add-on's own installer).",
		Sources: []string{"coredns/deployment#87"},
	},
	{
		ID:      CNIStaleConfig,
		Meaning: "Leftovers of an earlier pod network take precedence: a stale bridge, or a second CNI config that sorts first.",
		Hint: "With the node drained: `ip link delete cni0; ip link delete flannel.1`, remove the files (not the directory) that the " +
			"present add-on did not write from /etc/cni/net.d, `systemctl restart containerd`, and let the add-on's pod start again.",
		Sources: []string{"flannel-io/flannel#1437"},
	},
	{
		ID:      FlannelSubnetEnvMissing,
		Meaning: "Flannel does not run on the node, so its /run/flannel/subnet.env is missing.",
		Hint: "`kubectl -n kube-flannel get pods -o wide` and the log of this node's kube-flannel pod; get that pod running (writing " +
			"the file by hand only hides it).",
	},
	{
		ID:      PodCIDRNotAssigned,
		Meaning: "The node has no pod network range assigned.",
		Hint: "`kubectl get nodes -o custom-columns=N:.metadata.name,CIDR:.spec.podCIDR`; give kube-controller-manager " +
			"--allocate-node-cidrs=true and --cluster-cidr=RANGE (kubeadm: networking.podSubnet, or `kubeadm init " +
			"--pod-network-cidr=RANGE`), matching the add-on's range.",
		Sources: []string{"flannel-io/flannel#728"},
	},
	{
		ID:      KubeProxyCrash,
		Meaning: "kube-proxy fails on the node, so services do not work there.",
		Hint: "`kubectl -n kube-system logs -l k8s-app=kube-proxy --tail=50 | grep NODE` or `crictl logs`; set what it cannot " +
			"(`sysctl -w net.netfilter.nf_conntrack_max=131072`, `fs.inotify.max_user_instances=1024`), or conntrack.maxPerCore: 0 " +
			"in its ConfigMap.",
		Sources: []string{"kubernetes-sigs/kind#2240", "kubernetes/kubernetes#104303"},
	},
	{
		ID:      NetworkPluginPodsFailing,
		Meaning: "The pods of the network add-on fail.",
		Hint: "`kubectl get pods -A -o wide | grep -E 'flannel|calico|cilium|weave'`, then `kubectl logs` (also --previous, and of " +
			"its init containers) of the failing one.",
		Sources: []string{"projectcalico/calico#2656"},
	},
}
