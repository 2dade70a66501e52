package symptom

// networkCauses are what keeps machines from reaching each other.
var networkCauses = []Symptom{
	{
		ID:      APIServerUnreachable,
		Meaning: "The API server's address does not answer, and no more specific cause was found.",
		Hint: "`curl -k https://HOST:6443/livez` from here and from a control plane; there `crictl ps -a --name kube-apiserver` and " +
			"its log. Refused: it is down or the address is wrong; timeout: look at routes and firewalls.",
		Sources: []string{"kubernetes/kubeadm#2740"},
	},
	{
		ID:      FirewallBlocked,
		Meaning: "A firewall of the host or the cloud drops traffic that the cluster needs.",
		Hint: "Open 6443, 10250 and the overlay's port (8472/udp for Flannel, 4789/udp, 179) between nodes, 2379-2380 between " +
			"control planes: `firewall-cmd --permanent --add-port=6443/tcp … && firewall-cmd --reload`, `ufw allow 6443/tcp`, or the " +
			"cloud's security group.",
		Sources: []string{"kubernetes/kubernetes#100797"},
	},
	{
		ID:      DNSResolutionFailure,
		Meaning: "A name that the join needs, most often the control plane's, does not resolve on this machine.",
		Hint:    "`getent hosts NAME`; fix the DNS server in /etc/resolv.conf or add the name to /etc/hosts, then join again.",
		Sources: []string{"kubernetes-sigs/kind#2099"},
	},
	{
		ID:      ProxyInterference,
		Meaning: "An HTTP proxy captures traffic that is meant for the cluster.",
		Hint: "Add the API server's address, the node, service and pod networks, .svc and .cluster.local to NO_PROXY of the shell, " +
			"the kubelet and the runtime (`systemctl show -p Environment containerd kubelet`), or unset HTTPS_PROXY for the join.",
		Sources: []string{"kubernetes/kubeadm#2145"},
	},
	{
		ID:      AdvertiseAddressWrong,
		Meaning: "A cluster address belongs to the wrong interface (such as loopback or NAT), so other nodes cannot reach it.",
		Hint: "Name the right one: `kubeadm init --apiserver-advertise-address=IP` (joining: localAPIEndpoint.advertiseAddress, and " +
			"--node-ip for the kubelet); with VirtualBox or Vagrant never the NAT address 10.0.2.15; then `kubeadm reset -f` and " +
			"again.",
		Sources: []string{"kubernetes/kubeadm#1359", "kubernetes/kubeadm#2275"},
	},
}
