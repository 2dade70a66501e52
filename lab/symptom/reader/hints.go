package reader

import (
	"bytes"
	"sync"

	"k8slab/lab/symptom"
)

// hints are words and the cause that they suggest, the most reliable first.
var hints = []struct {
	id    symptom.ID
	words []string
}{
	{symptom.SwapEnabled, []string{"swap on", "swap is", "disable swap", "swapfile", "fail-swap-on"}},
	{symptom.FirewallBlocked, []string{"firewall", "security group", "ufw "}},
	{symptom.DuplicateMachineIdentity, []string{"machine-id", "product_uuid", "cloned"}},
	{symptom.ClockSkew, []string{"clock", "ntp ", "chrony", "timedatectl", "time sync"}},
	{symptom.FlannelSubnetEnvMissing, []string{"subnet.env"}},
	{symptom.ControlPlaneEndpointMissing, []string{"controlPlaneEndpoint"}},
	{symptom.BootstrapKubeconfigMissing, []string{"bootstrap-kubelet.conf"}},
	{symptom.KubeletConfigMissing, []string{"kubelet/config.yaml"}},
	{symptom.CertificateKeyInvalid, []string{"decrypt", "cipher:"}},
	{symptom.ImageFilesystemZero, []string{"capacity 0"}},
	{symptom.EtcdSlow, []string{"took too long", "fsync", "slow disk", "overloaded", "heartbeat on time"}},
	{symptom.AdvertiseAddressWrong, []string{"advertise-address", "advertiseAddress", "node-ip", "10.0.2.15"}},
	{symptom.CRIPluginDisabled, []string{"disabled_plugins", "unknown service"}},
	{symptom.CSRNotApproved, []string{"csr", "signing request", "certificatesigningrequest"}},
	{symptom.CgroupV1Unsupported, []string{"cgroup v1", "cgroups v1", "cgroupv1"}},
	{symptom.CgroupDriverMismatch, []string{"cgroup"}},
	{symptom.SELinuxDenied, []string{"selinux"}},
	{symptom.ReadOnlyFilesystem, []string{"read-only"}},
	{symptom.DiskFull, []string{"disk pressure", "diskpressure", "no space"}},
	{symptom.OutOfMemory, []string{"oom-", "oomkill", "oom killer", "out of memory"}},
	{symptom.X509SANMismatch, []string{"subject alternative", "IP SANs", "certificate is valid", "certificate is not valid"}},
	{symptom.CertificateExpired, []string{"certificate has expired", "certificate expired", "expired certificate"}},
	{symptom.CACertHashMismatch, []string{"ca-cert-hash", "cacerthash", "public key hash"}},
	{symptom.CertificateKeyExpired, []string{"kubeadm-certs", "certificate-key", "certificate key"}},
	{symptom.X509UnknownAuthority, []string{"x509", "tls:", "certificate authority"}},
	{symptom.TokenExpiredOrInvalid, []string{"token"}},
	{symptom.BootstrapRBACForbidden, []string{"is forbidden"}},
	{symptom.ProxyInterference, []string{"http proxy", "https proxy", "http_proxy", "https_proxy", "via proxy"}},
	{symptom.DNSResolutionFailure, []string{"lookup", "resolve"}},
	{symptom.EtcdLearnerNotInSync, []string{"learner"}},
	{symptom.EtcdDataCorrupt, []string{"corrupt", "crc "}},
	{symptom.EtcdNoQuorum, []string{"quorum", "no leader"}},
	{symptom.EtcdMemberMismatch, []string{"initial-cluster", "peerurls"}},
	{symptom.SandboxImageMisconfigured, []string{"sandbox image", "pause:"}},
	{symptom.ImagePullFailure, []string{"pull image", "pulling image", "ImagePull", "manifest for"}},
	{symptom.CNIStaleConfig, []string{"cni0", "IP addresses available", "delegateAdd"}},
	{symptom.CNIPluginBinaryMissing, []string{"/opt/cni/bin"}},
	{symptom.PodCIDRNotAssigned, []string{"podcidr", "pod cidr"}},
	{symptom.KubeProxyCrash, []string{"kube-proxy", "proxier", "conntrack"}},
	{symptom.NetworkPluginPodsFailing, []string{"flannel", "calico", "cilium", "weave", "antrea"}},
	{symptom.CNINotInitialized, []string{"cni", "network plugin"}},
	{symptom.KernelPrereqMissing, []string{"modprobe", "kernel", "br_netfilter", "iptables", "nftables", "ip_forward"}},
	{symptom.CRIEndpointWrong, []string{"cri-socket", "crisocket", "runtime-endpoint", "dockershim"}},
	{symptom.RuntimeSocketMissing, []string{"containerd", "docker", "crio", "cri-o", "container runtime", "CRI"}},
	{symptom.NodeNameMismatch, []string{"node name", "hostname-override", "nodename", "register node"}},
	{symptom.HostnameInvalid, []string{"hostname"}},
	{symptom.LeftoverState, []string{"already exists", "not empty"}},
	{symptom.PortInUse, []string{"in use"}},
	{symptom.MachineNotRunning, []string{"shut off", "powered off"}},
	{symptom.MachinePaused, []string{"paused"}},
	{symptom.NodeUnreachable, []string{"ssh:", "port 22"}},
	{symptom.InsufficientResources, []string{"insufficient", "CPUs"}},
	{symptom.HostToolsMissing, []string{"executable file not found", "not found in system path"}},
	{symptom.KubeBinariesMissing, []string{"command not found", "no such package"}},
	{symptom.EtcdStaleMember, []string{"removed member", "member remove"}},
	{symptom.VersionSkew, []string{"version"}},
	{symptom.KubeletFlagRemoved, []string{"flag", "feature gate", "featuregate"}},
	{symptom.EtcdUnreachable, []string{"etcd"}},
	{symptom.ControllerManagerFailing, []string{"controller-manager"}},
	{symptom.APIServerUnreachable, []string{"apiserver", "api server", ":6443"}},
	{symptom.KubeletNotRunning, []string{"kubelet"}},
	// Words that fit many causes.
	{symptom.CACertHashMismatch, []string{"CA hash", "CA certificate hash"}},
	{symptom.NodeNameExists, []string{"duplicate hostname", "node password"}},
	{symptom.DNSResolutionFailure, []string{"plugin/loop", "resolv.conf", "dns"}},
	{symptom.BootstrapRBACForbidden, []string{"forbidden"}},
	{symptom.TokenExpiredOrInvalid, []string{"unauthorized", "credentials"}},
	{symptom.DiskFull, []string{"disk", "evict"}},
	{symptom.OutOfMemory, []string{"memory", "killed"}},
	{symptom.ControlPlaneCrashloop, []string{"control plane", "control-plane", "controlplane", "static pod", "kube-scheduler"}},
	{symptom.CertificateExpired, []string{"certificate"}},
	{symptom.ImagePullFailure, []string{"image"}},
	{symptom.NetworkPluginPodsFailing, []string{"network", "sandbox"}},
	{symptom.APIServerUnreachable, []string{"connection refused", "connect:", "dial tcp", "timeout", "timed out", "deadline exceeded",
		"no route to host"}},
	{symptom.TLSBootstrapTimeout, []string{"kubeadm", "execution phase", "join"}},
	{symptom.KubeletNotRunning, []string{"node", "pod"}},
}

// hintWords are the words of the hints in normal form.
var hintWords = sync.OnceValue(func() (all [][][]byte) {
	for _, h := range hints {
		all = append(all, normalizeAll(h.words...))
	}
	return all
})

// isHinted reports whether a text has any of the hints' words. Without one it is not about anything that the catalogue knows.
func isHinted(normal []byte) bool {
	for _, words := range hintWords() {
		if hasAny(normal, words) {
			return true
		}
	}
	return false
}

func hasAny(text []byte, words [][]byte) bool {
	for _, w := range words {
		if bytes.Contains(text, w) {
			return true
		}
	}
	return false
}
