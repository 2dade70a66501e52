package reader

import (
	"bytes"
	"regexp"
	"slices"

	"k8slab/lab/symptom"
)

// When nothing is known in a text that is somebody's complaint – a few pasted lines, an excerpt of a log that is mostly errors, or what ended
// a command – its words still tell where to look. A guess is made from them, never beside something known. It is a warning, but a failure
// where a command failed.

const (
	// fewRecords is the most that a pasted complaint has.
	fewRecords = 6
	// excerptRecords is the most that an excerpt of a log has; of one that was cut out for its errors, half are.
	excerptRecords, excerptShare = 40, 2
	// complaintLimit is how many records that ended a command are kept, and guessLimit how many causes are guessed.
	complaintLimit, guessLimit = 16, 3
)

// complaint is a record that says that something went wrong.
type complaint struct {
	line      int
	bare, raw []byte
	grave     bool // it calls itself an error
}

// graveMarks are how programs other than klog's mark a record as an error, in bare form.
var graveMarks = bareAll("level=error", "level=fatal", "\"level\":\"error\"", "\"level\":\"fatal\"", "panic:", "[FATAL]", "FATAL:", "ERRO[", "FATA[",
	"CRITICAL:", "[ERROR]", "]: Error:", "Main process exited, code=", "Failed with result", "entered failed state")

// klogError is how klog marks one.
var klogError = regexp.MustCompile(`(?:^|[\s:])[EF]\d{4} \d{2}:\d{2}:\d{2}`)

func isGrave(bare, raw []byte) bool {
	return hasAny(bare, graveMarks) || klogError.Match(raw[:min(len(raw), headSearch)])
}

// laments are the words by which a record complains, in bare form.
var laments = bareAll("error", "failed", "failure", "cannot", "can't", "couldn't", "unable", "fatal", "denied", "refused", "timed out",
	"timeout", "not found", "invalid", "panic", "not supported", "unsupported", "mismatch", "missing", "not approved", "expired",
	"not available", "not allowed", "not valid", "rejected", "does not match", "unauthorized", "forbidden", "[fatal]", "crash",
	"not ready", "unhealthy", "killed", "exceeded", "no route", "unreachable", "does not exist", "no such", "is down", "not respond", "conflict",
	"duplicate", "terminated", "evicted", "could not", "collision", "overloaded", "too long", "exited", "aborted", "lost", "wrong",
	"corrupt", "is in use", "blocked",
	"constantly", "stuck", "hangs", "failing", "not working")

// harmless are the words by which a record takes the sting out of that.
var harmless = bareAll("system container stats", "nameserver limits", "no relationship found between node",
	"orphaned pod", "summary stats", "update stats for container",
	"skipping pod synchronization", "container log stats", "can't get disk usage", "partial failures", "TLS handshake error", "ensure lease",
	"failed to get rootfs", "image filesystem", "cadvisor", "container factory", "reload cni", "leader election record", "object has been modified",
	"cannot get PodSandbox", "not found: does not exist", "RemoveContainer", "ContainerStatus", "DeleteContainer", "[WARNING", "failed=0", "errors", "error=<nil>", "no error", "level=info", "level=warning", "\"level\":\"info\"", "\"level\":\"warn\"", "skip plugin", "successfully", "MESSAGE ERROR", "canary", "ip6tables", "legacy-service-account-token-tracking", "FAILED - RETRYING", "failed to sync configmap cache", "no retries permitted", "Failed to find module",
	"service account token has expired", "invalid bearer token", "authentication configuration", "untolerated taint {node.kubernetes.io/not-ready", "statuscode: 503")

// hints are words and the cause to look at, the telling ones first.
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
	// Words that say little.
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
	{symptom.APIServerUnreachable, []string{"connection refused", "connect:", "dial tcp", "timeout", "timed out", "deadline exceeded", "no route to host"}},
	{symptom.TLSBootstrapTimeout, []string{"kubeadm", "execution phase", "join"}},
	{symptom.KubeletNotRunning, []string{"node", "pod"}},
}

func bareAll(texts ...string) (all [][]byte) {
	for _, t := range texts {
		all = append(all, []byte(bare(t)))
	}
	return all
}

func hasAny(text []byte, words [][]byte) bool {
	for _, w := range words {
		if bytes.Contains(text, w) {
			return true
		}
	}
	return false
}

// isPlaint reports whether the text is only a few lines that somebody pasted, and not of a log: logs tell of failures that pass.
func (s *scan) isPlaint() bool {
	if s.records > fewRecords || s.recovered || s.reassured {
		return false
	}
	for _, c := range s.complaints {
		if readHead(string(c.raw[:min(len(c.raw), headSearch)])).time != "" {
			return false
		}
	}
	return true
}

// isExcerpt reports whether the text is a piece of a log that somebody cut out because of its errors.
func (s *scan) isExcerpt() bool {
	return !s.recovered && s.records <= excerptRecords && s.graves*excerptShare >= s.records && s.graves > 0
}

// nothingProved reports whether what is known in the record at hand proves nothing.
func (s *scan) nothingProved() bool {
	for _, f := range s.found {
		if f.known.kind != ofCause || f.known.pattern.strength != weak && f.known.pattern.atLeast == 0 {
			return false
		}
	}
	return true
}

// complain keeps the record at hand for a guess. What is known to be harmless is no complaint.
func (s *scan) complain(deadly, dropped bool) {
	s.records++
	s.keepSample()
	if dropped {
		s.familiar = true
		return
	}
	unknown := s.nothingProved()
	grave := unknown && s.records <= excerptRecords && isGrave(s.rec.bare, s.rec.raw) && !hasAny(s.rec.bare, harmless)
	if grave {
		s.graves++
	}
	if len(s.complaints) < complaintLimit && (deadly || grave || s.records <= fewRecords && len(s.found) == 0) {
		s.complaints = append(s.complaints, complaint{s.rec.line, bytes.Clone(s.rec.bare), bytes.Clone(s.rec.raw), grave || deadly})
	}
}

const (
	// shortText is how many records a text has that is taken whole; of a longer one its complaints among the first are.
	shortText, sampleReach = 8, 400
	// sampleLimit is how many records are kept to tell what the text resembles, and sampleWidth how much of each.
	sampleLimit, sampleWidth = 24, 600
	// troubledRecords is the most that a piece of a log has of which nothing at all is known, but that something failed.
	troubledRecords = 20
)

// saysInfo is how klog marks what is no trouble.
var saysInfo = regexp.MustCompile(`(?:^|[\s:])I\d{4} \d{2}:\d{2}:\d{2}`)

// reassuring are the words by which a record says that something works, in bare form.
var reassuring = bareAll("successfully", "caches are synced", "Healthy ok", "has joined", "is now running", "succeeded", "pool is healthy",
	"0 errors", "Started container", "no issues", "took leadership", "acquired lease", "Active: active (running)", "unreachable=0 failed=0")

// keepSample keeps the record at hand when it may tell what the text resembles.
func (s *scan) keepSample() {
	if s.records > sampleReach {
		return
	}
	raw := s.rec.raw[:min(len(s.rec.raw), sampleWidth)]
	if s.records <= shortText {
		s.opening = append(s.opening, string(raw))
	}
	complains := hasAny(s.rec.bare, laments)
	if hasAny(s.rec.bare, reassuring) {
		s.familiar, s.reassured = true, true
	} else if complains && len(s.troubles) < complaintLimit && !hasAny(s.rec.bare, harmless) && !saysInfo.Match(raw) {
		s.troubles = append(s.troubles, complaint{line: s.rec.line, bare: bytes.Clone(s.rec.bare), raw: bytes.Clone(raw)})
	}
	if len(s.laments) < sampleLimit && (complains || bytes.Contains(s.rec.bare, warn)) {
		s.laments = append(s.laments, string(raw))
	}
}

var warn = []byte("warn")

// sample is what the text is compared by.
func (s *scan) sample() []string {
	if s.records <= shortText || len(s.laments) == 0 {
		return s.opening
	}
	return s.laments
}

// guess names the causes to look at when nothing is known: those that the complaints resemble.
func (s *scan) guess() (ids []symptom.ID) {
	plaints := s.plaints()
	var texts []string
	var all []byte
	for _, c := range plaints {
		texts = append(texts, string(c.raw[:min(len(c.raw), sampleWidth)]))
		all = append(all, c.bare...)
	}
	like := resembling()
	for _, r := range like.causesOf(termsOf(texts...), all) {
		if len(ids) == guessLimit || r.id == symptom.Healthy && len(ids) == 0 && s.ends == 0 {
			break
		}
		if r.id == symptom.Healthy {
			continue
		}
		c := plaints[like.mostLike(r.id, texts)]
		t := &tally{weak: 1, surmised: true}
		t.first.set(c.line, c.raw, &known{phrase: phrase{parts: []string{""}}})
		s.tallies[r.id] = t
		ids = append(ids, r.id)
	}
	return ids
}

// plaints are the complaints to guess from: none when the text may be that of a machine on which nothing is wrong.
func (s *scan) plaints() (ps []complaint) {
	if s.ends == 0 && !s.isPlaint() && !s.isExcerpt() {
		if s.records > troubledRecords || s.recovered || s.familiar {
			return nil
		}
		return slices.DeleteFunc(s.troubles, func(c complaint) bool { return !hinted(c.bare) })
	}
	for _, c := range s.complaints {
		if (c.grave || hasAny(c.bare, laments)) && !hasAny(c.bare, harmless) {
			ps = append(ps, c)
		}
	}
	return ps
}

// hinted reports whether a complaint has any of the hints' words: of other things this judge knows nothing.
func hinted(bare []byte) bool {
	return slices.ContainsFunc(hintWords(), func(words [][]byte) bool { return hasAny(bare, words) })
}
