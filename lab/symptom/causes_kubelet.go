package symptom

// kubeletCauses are what keeps the kubelet, and what it runs as static pods, from working.
var kubeletCauses = []Symptom{
	{
		ID:      KubeletNotRunning,
		Meaning: "The kubelet is stopped or keeps exiting, and the evidence does not show why.",
		Hint: "`journalctl -u kubelet -n 100 --no-pager` has the reason in its last lines before each exit; then `systemctl enable " +
			"--now kubelet`, or `kubeadm reset -f` and join again.",
		Repairable: true,
	},
	{
		ID:      KubeletConfigMissing,
		Meaning: "/var/lib/kubelet/config.yaml is missing: kubeadm has not run on this node, or it failed.",
		Hint: "Expected before `kubeadm init` or `kubeadm join` (as root); after it, look for that command's own error, then " +
			"`kubeadm reset -f` and join again. On a member that lost the file: `kubeadm upgrade node phase kubelet-config`, " +
			"`systemctl restart kubelet`.",
	},
	{
		ID:      KubeletStandalone,
		Meaning: "The kubelet runs without a kubeconfig, as a standalone agent, so it never registers with the cluster.",
		Hint: "`systemctl cat kubelet` must show kubeadm's drop-in 10-kubeadm.conf with --kubeconfig=/etc/kubernetes/kubelet.conf " +
			"and --bootstrap-kubeconfig, and nothing that empties its arguments; `systemctl daemon-reload && systemctl restart " +
			"kubelet`, then join the node.",
		Sources:    []string{"kubernetes/kubeadm#3270"},
		Repairable: true,
	},
	{
		ID:      KubeletFlagRemoved,
		Meaning: "The kubelet is started with a flag or setting that its version no longer knows.",
		Hint: "Remove the flag from /var/lib/kubelet/kubeadm-flags.env, /etc/default/kubelet, /etc/sysconfig/kubelet or the systemd " +
			"drop-in (`systemctl cat kubelet`), and from kubeletExtraArgs; `systemctl daemon-reload && systemctl restart kubelet`.",
		Sources: []string{"kubernetes/kubernetes#69656"},
	},
	{
		ID: TLSBootstrapTimeout,
		Meaning: "The node did not get its identity in time, and the evidence does not show why; leftovers of an earlier attempt are " +
			"the usual finding.",
		Hint: "`journalctl -u kubelet -n 100 --no-pager` on the joining node, `kubectl get csr` on a control plane; then `kubeadm " +
			"reset -f` and join again with a new token (`kubeadm token create --print-join-command`).",
		Sources: []string{"kubernetes/kubeadm#2091", "kubernetes/kubernetes#93786"},
	},
	{
		ID:      CSRNotApproved,
		Meaning: "Certificate requests of a node wait for approval, or are approved and never issued.",
		Hint: "`kubectl get csr`, `kubectl certificate approve NAME`; when new ones go on waiting, `kubeadm init phase " +
			"bootstrap-token` restores the approval bindings; when approved ones are not issued, read kube-controller-manager's log " +
			"and look at its CA key.",
		Sources: []string{"kubernetes/kubernetes#73356", "kubernetes/kubeadm#747"},
	},
	{
		ID:      NodeNameMismatch,
		Meaning: "The node's name and the identity in the kubelet's certificate are not the same.",
		Hint: "Make host name, kubelet's --hostname-override (or nodeRegistration.name) and certificate agree, all lower case: " +
			"`hostnamectl set-hostname NAME`, then `kubeadm reset -f` and join again.",
		Sources: []string{"kubernetes/kubernetes#47695"},
	},
	{
		ID: BootstrapKubeconfigMissing,
		Meaning: "The kubelet wants /etc/kubernetes/bootstrap-kubelet.conf, which is gone, because its own kubeconfig is missing or " +
			"no longer valid.",
		Hint: "Issue a new one on a control plane: `kubeadm kubeconfig user --org system:nodes --client-name system:node:NODE > " +
			"kubelet.conf`, put it in /etc/kubernetes/kubelet.conf of the node and `systemctl restart kubelet`; or `kubeadm reset " +
			"-f` and join again.",
		Sources: []string{"kubernetes/kubernetes#98150"},
	},
	{
		ID:      ControllerManagerFailing,
		Meaning: "kube-controller-manager does not work, so nothing signs certificates, assigns pod networks or watches nodes.",
		Hint: "`crictl logs $(crictl ps -a --name kube-controller-manager -q | head -1)`; its flags are in " +
			"/etc/kubernetes/manifests/kube-controller-manager.yaml.",
	},
	{
		ID:      ControlPlaneCrashloop,
		Meaning: "The containers of the control plane keep restarting.",
		Hint: "`crictl ps -a | grep kube-` and `crictl logs ID` of the one that ended last: its own error is the cause; the " +
			"kubelet's journal has it when the container is gone.",
		Sources: []string{"kubernetes/kubernetes#102715"},
	},
}
