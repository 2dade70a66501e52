package symptom

import "bytes"

// When nothing is known in a text that is somebody's complaint – a few pasted lines, or what ended a command – its words still tell where to
// look. A guess is made from them; it is a warning, and never made beside something known.

const (
	// fewRecords is the most that a pasted complaint has.
	fewRecords = 6
	// complaintLimit is how many records that ended a command are kept, and guessLimit how many causes are guessed.
	complaintLimit, guessLimit = 16, 3
)

// complaint is a record that says that something went wrong.
type complaint struct {
	line      int
	bare, raw []byte
}

// laments are the words by which a record complains, in bare form.
var laments = bareAll("error:", "err=", "failed", "failure", "cannot", "can't", "couldn't", "unable", "fatal", "denied", "refused", "timed out",
	"timeout", "not found", "invalid", "panic", "not supported", "unsupported", "mismatch", "missing", "not approved", "expired",
	"not available", "not allowed", "not valid")

// harmless are the words by which a record takes the sting out of that.
var harmless = bareAll("[WARNING", "level=info", "level=warning", "\"level\":\"info\"", "\"level\":\"warn\"", "skip plugin", "successfully")

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
	{OutOfMemory, bareAll("oom", "out of memory")},
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
	{TLSBootstrapTimeout, bareAll("kubeadm join", "execution phase")},
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

// complain keeps the record at hand for a guess. What is known to be harmless is no complaint.
func (s *scan) complain(deadly bool) {
	s.records++
	if len(s.complaints) < complaintLimit && (deadly || s.records <= fewRecords && len(s.found) == 0) {
		s.complaints = append(s.complaints, complaint{s.rec.line, bytes.Clone(s.rec.bare), bytes.Clone(s.rec.raw)})
	}
}

// guess names the causes to look at when nothing is known, from the words of the complaints.
func (s *scan) guess() (ids []ID) {
	if s.ends == 0 && !s.isPlaint() {
		return nil
	}
	for _, h := range hints {
		for _, c := range s.complaints {
			if len(ids) == guessLimit || !hasAny(c.bare, h.words) || !hasAny(c.bare, laments) || hasAny(c.bare, harmless) {
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
