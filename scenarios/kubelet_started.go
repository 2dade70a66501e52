package scenarios

var kubeletStarted = Fault{
	Name:  "kubelet-started",
	Story: "something starts kubelet before kubeadm does, and it fails again and again for want of its configuration (worker-join-hanging)",
	Roles: everyRole,
	Inject: script(`
		rm -f /var/lib/kubelet/config.yaml
		systemctl enable kubelet
		systemctl start --no-block kubelet`),
	Join: &Join{},
}
