// Package symptom is the closed catalogue of causes that k8slab names: their IDs, what they mean, what mends them, and which brings which
// about. It holds no phrases: package reader finds the causes in text.
package symptom

// ID names a cause, in kebab-case, the same in code, output and documents.
type ID string

// The causes.
const (
	// Container runtime.
	RuntimeSocketMissing      ID = "runtime-socket-missing"
	CRIPluginDisabled         ID = "cri-plugin-disabled"
	RuntimeVersionUnsupported ID = "runtime-version-unsupported"
	CRIEndpointAmbiguous      ID = "cri-endpoint-ambiguous"
	CRIEndpointWrong          ID = "cri-endpoint-wrong"
	CrictlEndpointUnset       ID = "crictl-endpoint-unset"
	CgroupDriverMismatch      ID = "cgroup-driver-mismatch"
	SandboxImageMisconfigured ID = "sandbox-image-misconfigured"
	// Images.
	ImagePullFailure ID = "image-pull-failure"
	// Kubelet.
	KubeletNotRunning          ID = "kubelet-not-running"
	KubeletConfigMissing       ID = "kubelet-config-missing"
	KubeletStandalone          ID = "kubelet-standalone"
	KubeletFlagRemoved         ID = "kubelet-flag-removed"
	TLSBootstrapTimeout        ID = "tls-bootstrap-timeout"
	CSRNotApproved             ID = "csr-not-approved"
	NodeNameMismatch           ID = "node-name-mismatch"
	BootstrapKubeconfigMissing ID = "bootstrap-kubeconfig-missing"
	ControllerManagerFailing   ID = "controller-manager-failing"
	ControlPlaneCrashloop      ID = "control-plane-crashloop"
	// Joining: identity and trust.
	TokenExpiredOrInvalid       ID = "token-expired-or-invalid"
	CACertHashMismatch          ID = "ca-cert-hash-mismatch"
	CertificateKeyExpired       ID = "certificate-key-expired"
	CertificateKeyInvalid       ID = "certificate-key-invalid"
	BootstrapRBACForbidden      ID = "bootstrap-rbac-forbidden"
	JoinConfigMissing           ID = "join-config-missing"
	RBACChanged                 ID = "rbac-changed"
	AdmissionRejects            ID = "admission-rejects"
	CertificateExpired          ID = "certificate-expired"
	ClockSkew                   ID = "clock-skew"
	X509UnknownAuthority        ID = "x509-unknown-authority"
	X509SANMismatch             ID = "x509-san-mismatch"
	ControlPlaneEndpointMissing ID = "control-plane-endpoint-missing"
	VersionSkew                 ID = "version-skew"
	// Network.
	APIServerUnreachable  ID = "apiserver-unreachable"
	FirewallBlocked       ID = "firewall-blocked"
	DNSResolutionFailure  ID = "dns-resolution-failure"
	ProxyInterference     ID = "proxy-interference"
	AdvertiseAddressWrong ID = "advertise-address-wrong"
	// CNI and kube-proxy.
	CNINotInitialized        ID = "cni-not-initialized"
	CNIPluginBinaryMissing   ID = "cni-plugin-binary-missing"
	CNIStaleConfig           ID = "cni-stale-config"
	FlannelSubnetEnvMissing  ID = "flannel-subnet-env-missing"
	PodCIDRNotAssigned       ID = "pod-cidr-not-assigned"
	KubeProxyCrash           ID = "kube-proxy-crash"
	NetworkPluginPodsFailing ID = "network-plugin-pods-failing"
	// etcd.
	EtcdLearnerNotInSync ID = "etcd-learner-not-in-sync"
	EtcdTooManyLearners  ID = "etcd-too-many-learners"
	EtcdStaleMember      ID = "etcd-stale-member"
	EtcdMemberMismatch   ID = "etcd-member-mismatch"
	EtcdSlow             ID = "etcd-slow"
	EtcdNoQuorum         ID = "etcd-no-quorum"
	EtcdUnreachable      ID = "etcd-unreachable"
	// Host.
	SwapEnabled              ID = "swap-enabled"
	KernelPrereqMissing      ID = "kernel-prereq-missing"
	CgroupControllerMissing  ID = "cgroup-controller-missing"
	CgroupV1Unsupported      ID = "cgroup-v1-unsupported"
	HostToolsMissing         ID = "host-tools-missing"
	KubeBinariesMissing      ID = "kube-binaries-missing"
	InsufficientResources    ID = "insufficient-resources"
	OutOfMemory              ID = "out-of-memory"
	DiskFull                 ID = "disk-full"
	ReadOnlyFilesystem       ID = "read-only-filesystem"
	SELinuxDenied            ID = "selinux-denied"
	LeftoverState            ID = "leftover-state"
	PortInUse                ID = "port-in-use"
	NodeNameExists           ID = "node-name-exists"
	HostnameInvalid          ID = "hostname-invalid"
	DuplicateMachineIdentity ID = "duplicate-machine-identity"
	// Upgrades.
	FlagRemoved       ID = "flag-removed"
	APIRemoved        ID = "api-removed"
	EvictionBlocked   ID = "eviction-blocked"
	UpgradeUnfinished ID = "upgrade-unfinished"
	// No failure.
	Healthy ID = "healthy"
	// The lab's own.
	MachineNotRunning   ID = "machine-not-running"
	MachinePaused       ID = "machine-paused"
	NodeUnreachable     ID = "node-unreachable"
	EtcdDataCorrupt     ID = "etcd-data-corrupt"
	ImageFilesystemZero ID = "image-filesystem-zero"
	FileChanged         ID = "file-changed"
	Unexplained         ID = "unexplained"
)
