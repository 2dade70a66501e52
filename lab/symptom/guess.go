package symptom

import (
	"bytes"
	"regexp"
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
	"duplicate", "terminated", "evicted")

// harmless are the words by which a record takes the sting out of that.
var harmless = bareAll("system container stats", "nameserver limits", "orphaned pod", "summary stats", "update stats for container",
	"skipping pod synchronization", "container log stats", "can't get disk usage", "partial failures", "TLS handshake error", "ensure lease",
	"failed to get rootfs", "image filesystem", "cadvisor", "container factory", "reload cni", "leader election record", "object has been modified",
	"cannot get PodSandbox", "not found: does not exist", "RemoveContainer", "ContainerStatus", "DeleteContainer", "[WARNING", "failed=0", "errors", "error=<nil>", "no error", "level=info", "level=warning", "\"level\":\"info\"", "\"level\":\"warn\"", "skip plugin", "successfully")

// hints are words and the cause to look at, the telling ones first.
var hints = []struct {
	id    ID
	words [][]byte
}{
	{SwapEnabled, bareAll("swap on", "swap is", "disable swap")},
	{CSRNotApproved, bareAll("csr", "signing request", "certificatesigningrequest")},
	{CgroupV1Unsupported, bareAll("cgroup v1", "cgroups v1", "cgroupv1")},
	{CgroupDriverMismatch, bareAll("cgroup")},
	{SELinuxDenied, bareAll("selinux")},
	{ReadOnlyFilesystem, bareAll("read-only")},
	{DiskFull, bareAll("disk pressure", "diskpressure", "no space")},
	{OutOfMemory, bareAll("oom-", "oomkill", "oom killer", "out of memory")},
	{X509SANMismatch, bareAll("subject alternative", "IP SANs", "certificate is valid", "certificate is not valid")},
	{CertificateExpired, bareAll("certificate has expired", "certificate expired", "expired certificate")},
	{CACertHashMismatch, bareAll("ca-cert-hash", "cacerthash", "public key hash")},
	{CertificateKeyExpired, bareAll("kubeadm-certs", "certificate-key", "certificate key")},
	{X509UnknownAuthority, bareAll("x509", "tls:", "certificate authority")},
	{TokenExpiredOrInvalid, bareAll("token")},
	{BootstrapRBACForbidden, bareAll("is forbidden")},
	{ProxyInterference, bareAll("http proxy", "https proxy", "http_proxy", "https_proxy", "via proxy")},
	{DNSResolutionFailure, bareAll("lookup", "resolve")},
	{EtcdLearnerNotInSync, bareAll("learner")},
	{EtcdDataCorrupt, bareAll("corrupt", "crc ")},
	{EtcdNoQuorum, bareAll("quorum", "no leader")},
	{EtcdMemberMismatch, bareAll("initial-cluster", "peerurls")},
	{SandboxImageMisconfigured, bareAll("sandbox image", "pause:")},
	{ImagePullFailure, bareAll("pull image", "pulling image", "ImagePull", "manifest for")},
	{CNIStaleConfig, bareAll("cni0", "IP addresses available", "delegateAdd")},
	{CNIPluginBinaryMissing, bareAll("/opt/cni/bin")},
	{PodCIDRNotAssigned, bareAll("podcidr", "pod cidr")},
	{KubeProxyCrash, bareAll("kube-proxy", "proxier", "conntrack")},
	{NetworkPluginPodsFailing, bareAll("flannel", "calico", "cilium", "weave", "antrea")},
	{CNINotInitialized, bareAll("cni", "network plugin")},
	{KernelPrereqMissing, bareAll("modprobe", "kernel", "br_netfilter", "iptables", "nftables", "ip_forward")},
	{CRIEndpointWrong, bareAll("cri-socket", "crisocket", "runtime-endpoint", "dockershim")},
	{RuntimeSocketMissing, bareAll("containerd", "docker", "crio", "cri-o", "container runtime", "CRI")},
	{NodeNameMismatch, bareAll("node name", "hostname-override", "nodename", "register node")},
	{HostnameInvalid, bareAll("hostname")},
	{LeftoverState, bareAll("already exists", "not empty")},
	{PortInUse, bareAll("in use")},
	{VersionSkew, bareAll("version")},
	{KubeletFlagRemoved, bareAll("flag", "feature gate", "featuregate")},
	{EtcdUnreachable, bareAll("etcd")},
	{ControllerManagerFailing, bareAll("controller-manager")},
	{APIServerUnreachable, bareAll("apiserver", "api server", ":6443")},
	{KubeletNotRunning, bareAll("kubelet")},
	// Words that say little.
	{CACertHashMismatch, bareAll("CA hash", "CA certificate hash")},
	{NodeNameExists, bareAll("duplicate hostname", "node password")},
	{DNSResolutionFailure, bareAll("plugin/loop", "resolv.conf", "dns")},
	{BootstrapRBACForbidden, bareAll("forbidden")},
	{TokenExpiredOrInvalid, bareAll("unauthorized", "credentials")},
	{DiskFull, bareAll("disk", "evict")},
	{OutOfMemory, bareAll("memory", "killed")},
	{ControlPlaneCrashloop, bareAll("control plane", "control-plane", "controlplane", "static pod", "kube-scheduler")},
	{CertificateExpired, bareAll("certificate")},
	{ImagePullFailure, bareAll("image")},
	{NetworkPluginPodsFailing, bareAll("network", "sandbox")},
	{APIServerUnreachable, bareAll("connection refused", "connect:", "dial tcp", "timeout", "timed out", "deadline exceeded", "no route to host")},
	{TLSBootstrapTimeout, bareAll("kubeadm", "execution phase", "join")},
	{KubeletNotRunning, bareAll("node", "pod")},
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
	if s.records > fewRecords || s.recovered {
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
func (s *scan) complain(deadly bool) {
	s.records++
	unknown := s.nothingProved()
	grave := unknown && s.records <= excerptRecords && isGrave(s.rec.bare, s.rec.raw) && !hasAny(s.rec.bare, harmless)
	if grave {
		s.graves++
	}
	if len(s.complaints) < complaintLimit && (deadly || grave || s.records <= fewRecords && len(s.found) == 0) {
		s.complaints = append(s.complaints, complaint{s.rec.line, bytes.Clone(s.rec.bare), bytes.Clone(s.rec.raw), grave || deadly})
	}
}

// guess names the causes to look at when nothing is known, from the words of the complaints.
func (s *scan) guess() (ids []ID) {
	if s.ends == 0 && !s.isPlaint() && !s.isExcerpt() {
		return nil
	}
	for _, h := range hints {
		for _, c := range s.complaints {
			if len(ids) == guessLimit || s.tallies[h.id] != nil && s.tallies[h.id].surmised || !hasAny(c.bare, h.words) || !c.grave && !hasAny(c.bare, laments) || hasAny(c.bare, harmless) {
				continue
			}
			t := &tally{weak: 1, surmised: true}
			t.first.set(c.line, c.raw, &known{phrase: phrase{parts: []string{string(h.words[0])}}})
			s.tallies[h.id] = t
			ids = append(ids, h.id)
			break
		}
	}
	return ids
}
