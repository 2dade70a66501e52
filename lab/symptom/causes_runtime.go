package symptom

// runtimeCauses are what keeps the container runtime from serving, and images from arriving.
var runtimeCauses = []Symptom{
	{
		ID:      RuntimeSocketMissing,
		Meaning: "Nothing answers on the container runtime's socket: the runtime is not installed, not started, or dead.",
		Hint: "`systemctl status containerd` and `journalctl -u containerd -n 50`; then `systemctl enable --now containerd`, and " +
			"`crictl --runtime-endpoint unix:///run/containerd/containerd.sock info` must answer.",
		Sources:    []string{"kubernetes/kubeadm#2794"},
		Repairable: true,
	},
	{
		ID:      CRIPluginDisabled,
		Meaning: "containerd runs but does not serve the Kubernetes runtime interface: its CRI plugin is disabled or failed to load.",
		Hint: "Remove \"cri\" from disabled_plugins in /etc/containerd/config.toml (or recreate it: `containerd config default > " +
			"/etc/containerd/config.toml`, then SystemdCgroup = true), `systemctl restart containerd`, `crictl info`.",
		Sources:    []string{"containerd/containerd#4581", "containerd/containerd#8139", "kubernetes/kubernetes#131164"},
		Repairable: true,
	},
	{
		ID: RuntimeVersionUnsupported,
		Meaning: "The container runtime is too old, or too new, for the version of the runtime interface that the kubelet or kubeadm " +
			"speaks.",
		Hint: "`containerd --version`; install 1.6.4 or newer (Kubernetes 1.36 wants 2.2 or newer) from containerd.io's packages, " +
			"`systemctl restart containerd kubelet`.",
		Sources: []string{"kubernetes/kubeadm#3229"},
	},
	{
		ID:      CRIEndpointAmbiguous,
		Meaning: "kubeadm found more than one container runtime and will not choose between them.",
		Hint: "Name the one to use: `kubeadm join … --cri-socket unix:///run/containerd/containerd.sock` (or " +
			"nodeRegistration.criSocket), or remove the unused runtime.",
	},
	{
		ID:      CRIEndpointWrong,
		Meaning: "kubeadm or the kubelet uses the socket of a runtime other than the installed one.",
		Hint: "Set nodeRegistration.criSocket and --container-runtime-endpoint in /var/lib/kubelet/kubeadm-flags.env to " +
			"unix:///run/containerd/containerd.sock, correct `kubectl annotate node NODE --overwrite " +
			"kubeadm.alpha.kubernetes.io/cri-socket=unix:///run/containerd/containerd.sock`, `systemctl restart kubelet`.",
	},
	{
		ID:         CrictlEndpointUnset,
		Meaning:    "crictl has no endpoint configured and tries its default sockets; the node itself is not affected.",
		Hint:       "`crictl config runtime-endpoint unix:///run/containerd/containerd.sock` (or the same in /etc/crictl.yaml).",
		Repairable: true,
		Minor:      true,
	},
	{
		ID:      CgroupDriverMismatch,
		Meaning: "The kubelet and the container runtime use different cgroup drivers.",
		Hint: "Use systemd for both: SystemdCgroup = true under runc's options in /etc/containerd/config.toml (docker: " +
			"\"exec-opts\": [\"native.cgroupdriver=systemd\"]), cgroupDriver: systemd in /var/lib/kubelet/config.yaml; `systemctl " +
			"restart containerd kubelet`.",
		Sources: []string{"kubernetes/kubernetes#74249"},
	},
	{
		ID:      SandboxImageMisconfigured,
		Meaning: "The runtime is configured with a pause image that it cannot pull, or with one other than the image on the node.",
		Hint: "Set sandbox_image (containerd 2: sandbox under pinned_images) in /etc/containerd/config.toml, or pause_image of " +
			"CRI-O, to an image that is there or can be pulled (`kubeadm config images list | grep pause`), `systemctl restart " +
			"containerd`.",
		Sources: []string{"kubernetes/kubeadm#684"},
	},
	{
		ID:      ImagePullFailure,
		Meaning: "A container image cannot be pulled: the registry is unreachable, refuses, or has no such image.",
		Hint: "`crictl pull IMAGE` on the node shows the error alone; fix network, proxy or credentials, or use " +
			"`--image-repository`, or bring the images beforehand: `kubeadm config images pull`, `ctr -n k8s.io images import FILE`.",
	},
}
