package symptom

// identityCauses are names, ports and files that an earlier installation of this machine, or another machine, has taken.
var identityCauses = []Symptom{
	{
		ID:      LeftoverState,
		Meaning: "Files, containers or data of an earlier init or join are still on the machine.",
		Hint: "When this machine is no member (`kubectl get nodes`): `kubeadm reset -f`, remove what it names as left, then join " +
			"again.",
		Sources:    []string{"kubernetes-sigs/kubespray#13280"},
		Repairable: true,
	},
	{
		ID:      PortInUse,
		Meaning: "A port that is needed is taken, most often by a kubelet or control plane of an earlier attempt.",
		Hint: "`ss -ltnp 'sport = :10250'` (the port of the message) shows who; stop that service, or `kubeadm reset -f` when it is " +
			"an earlier kubelet or control plane.",
	},
	{
		ID:      NodeNameExists,
		Meaning: "The cluster already has a node of this name, and it is Ready.",
		Hint: "If an earlier join of this same machine left it: `kubectl delete node NAME` on a control plane (for a control plane " +
			"reset it first, so that its etcd member goes too); when another machine bears it, choose another name: `kubeadm join … " +
			"--node-name OTHER`.",
		Sources:    []string{"kubernetes/kubernetes#89512", "kubernetes/kubeadm#1711"},
		Repairable: true,
	},
	{
		ID:      HostnameInvalid,
		Meaning: "The machine's name is empty or not a valid DNS name (lowercase letters, digits, dashes, dots).",
		Hint:    "`hostnamectl set-hostname NAME` with a valid one, and the same in /etc/hosts; or `--node-name NAME`; then join again.",
	},
	{
		ID:      DuplicateMachineIdentity,
		Meaning: "Two machines share a machine-id, product UUID or MAC address, as clones do.",
		Hint: "On the clone: `rm /etc/machine-id && systemd-machine-id-setup`, `uuidgen`-new product UUID and MAC in the hypervisor; " +
			"compare `cat /sys/class/dmi/id/product_uuid /etc/machine-id` on all nodes, then reset and join again.",
		Sources: []string{"kubernetes/kubeadm#31"},
	},
}
