package scenarios

import "k8slab/lab/symptom"

// symptomsOf are the symptoms of findings that point at a component. Every symptom of the catalogue is here but Healthy, and the two that
// say themselves what they are of.
var symptomsOf = map[Component][]symptom.ID{
	ofKubelet: {symptom.CRIEndpointAmbiguous, symptom.CRIEndpointWrong, symptom.CgroupDriverMismatch,
		symptom.KubeletNotRunning, symptom.KubeletConfigMissing, symptom.KubeletStandalone, symptom.KubeletFlagRemoved,
		symptom.TLSBootstrapTimeout, symptom.NodeNameMismatch, symptom.BootstrapKubeconfigMissing,
		symptom.AdvertiseAddressWrong},
	ofContainerd: {symptom.RuntimeSocketMissing, symptom.CRIPluginDisabled, symptom.RuntimeVersionUnsupported,
		symptom.CRIEndpointAmbiguous, symptom.CRIEndpointWrong, symptom.CrictlEndpointUnset, symptom.CgroupDriverMismatch,
		symptom.SandboxImageMisconfigured, symptom.ImageFilesystemZero},
	ofPodNetwork: {symptom.CNINotInitialized, symptom.CNIPluginBinaryMissing, symptom.CNIStaleConfig,
		symptom.FlannelSubnetEnvMissing, symptom.PodCIDRNotAssigned, symptom.NetworkPluginPodsFailing,
		symptom.KernelPrereqMissing},
	ofKubeProxy: {symptom.KubeProxyCrash},
	ofDNS:       {symptom.DNSResolutionFailure},
	ofAPIServer: {symptom.ControlPlaneCrashloop, symptom.APIServerUnreachable, symptom.AdvertiseAddressWrong},
	ofEtcd: {symptom.ControlPlaneCrashloop, symptom.EtcdLearnerNotInSync, symptom.EtcdTooManyLearners,
		symptom.EtcdStaleMember, symptom.EtcdMemberMismatch, symptom.EtcdSlow, symptom.EtcdNoQuorum, symptom.EtcdUnreachable,
		symptom.EtcdDataCorrupt},
	ofControllerManager: {symptom.CSRNotApproved, symptom.ControllerManagerFailing, symptom.ControlPlaneCrashloop,
		symptom.PodCIDRNotAssigned},
	ofScheduler:    {symptom.ControlPlaneCrashloop},
	ofCertificates: {symptom.CertificateExpired, symptom.X509UnknownAuthority, symptom.X509SANMismatch},
	ofJoining: {symptom.TLSBootstrapTimeout, symptom.CSRNotApproved, symptom.BootstrapKubeconfigMissing,
		symptom.TokenExpiredOrInvalid, symptom.CACertHashMismatch, symptom.CertificateKeyExpired,
		symptom.CertificateKeyInvalid, symptom.BootstrapRBACForbidden, symptom.JoinConfigMissing,
		symptom.ControlPlaneEndpointMissing, symptom.LeftoverState, symptom.NodeNameExists},
	ofRBAC:      {symptom.BootstrapRBACForbidden, symptom.RBACChanged},
	ofAdmission: {symptom.AdmissionRejects},
	ofImages:    {symptom.SandboxImageMisconfigured, symptom.ImagePullFailure},
	ofDisk:      {symptom.DiskFull, symptom.ReadOnlyFilesystem, symptom.ImageFilesystemZero},
	ofFirewall:  {symptom.FirewallBlocked},
	ofPrograms:  {symptom.VersionSkew, symptom.HostToolsMissing, symptom.KubeBinariesMissing},
	ofMachine: {symptom.ClockSkew, symptom.ProxyInterference, symptom.SwapEnabled, symptom.KernelPrereqMissing,
		symptom.CgroupControllerMissing, symptom.CgroupV1Unsupported, symptom.InsufficientResources, symptom.OutOfMemory,
		symptom.SELinuxDenied, symptom.PortInUse, symptom.HostnameInvalid, symptom.DuplicateMachineIdentity,
		symptom.MachineNotRunning, symptom.MachinePaused, symptom.NodeUnreachable},
}

// organWords are how a measurement calls what it is of: its organ, the check of a machine, or what was measured. A pod that cannot be made
// shows the runtime or the pod network.
var organWords = map[Component][]string{
	ofKubelet:    {"kubelet", "kubelet restart", "kubelet-unit", "kubelet-config", "kubelet-service", "node"},
	ofContainerd: {"containerd", "cri", "runtime", "runtime-version", "sandbox"},
	ofPodNetwork: {"pod network", "network", "cni-config", "cni-plugins", "flannel", "flannel's", "sandbox", "forwarding", "sysctls",
		"kernel-modules"},
	ofKubeProxy:         {"kube-proxy", "kube-proxy's", "service"},
	ofDNS:               {"dns", "coredns"},
	ofAPIServer:         {"api server", "api-server", "static pods"},
	ofEtcd:              {"etcd", "etcd-member", "etcd-peers", "static pods"},
	ofControllerManager: {"controller-manager", "static pods"},
	ofScheduler:         {"scheduler", "scheduling", "static pods"},
	ofCertificates:      {"certificate", "certificates"},
	ofJoining:           {"joining", "cluster-info", "kubeadm"},
	ofRBAC:              {"rbac"},
	ofAdmission:         {"admission", "webhook", "webhooks"},
	ofImages:            {"image", "images"},
	ofDisk:              {"disk", "file systems", "image-filesystem"},
	ofFirewall:          {"firewall", "forwarding", "ports"},
	ofPrograms:          {"kube-binaries", "host-tools", "labnode"},
	ofMachine:           {"ssh", "sysctls", "swap", "cgroups", "labnode", "hostname", "machine-id", "clock"},
}
