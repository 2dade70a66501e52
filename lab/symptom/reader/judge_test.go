package reader

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"k8slab/lab/event"
	"k8slab/lab/symptom"
)

const promote = "etcdserver: can only promote a learner member which is in sync with leader"

func TestJudgeNormalises(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       symptom.ID
	}{
		{"plain", "[ERROR Swap]: running with swap on is not supported", symptom.SwapEnabled},
		{"terminal colours", "\x1b[31m[ERR\x1b[0mOR Swap]\x1b[K: running with swap on", symptom.SwapEnabled},
		{"carriage returns", "[preflight]\r\n\t[ERROR Swap]: running with swap on\r\n", symptom.SwapEnabled},
		{"quoted mail", "> > error: validate service connection: failed with unknown service\n> > runtime.v1.RuntimeService",
			symptom.CRIPluginDisabled},
		{"wrapped between words",
			"couldn't validate the identity: could not find a JWS signature in the\ncluster-info ConfigMap for token ID",
			symptom.TokenExpiredOrInvalid},
		{"wrapped inside a word", "rpc error: code = Unimplemented desc = unknown service runtime.v1.Runti\nmeService",
			symptom.CRIPluginDisabled},
		{"wrapped after a colon", "error:\nthis version of kubeadm only supports deploying clusters with the control plane version",
			symptom.VersionSkew},
		{"not wrapped after a short line", "the cluster has too many\nlearner members in cluster", ""},
		{"JSON in JSON", `{"msg":"{\"error\":\"desc = etcdserver: too many learner\\u0020members in cluster\"}"}`,
			symptom.EtcdTooManyLearners},
		{"escaped quotes", `err="failed to run Kubelet: unable to load \"bootstrap\" kubeconfig: stat"`,
			symptom.BootstrapKubeconfigMissing},
		{"escaped line ends", `"stderr": "some\n\t[ERROR Port-10250]: Port 10250 is in use\nmore"`, symptom.PortInUse},
		{"typographic quotes", "Secret “kubeadm-certs” was not found in the “kube-system” Namespace", symptom.CertificateKeyExpired},
		{"markup of a web page", "<code>[ERROR Swap]: running with swap on</code><br>dial tcp &quot;x&quot;", symptom.SwapEnabled},
		{"escaped colours", `\u001b[0;31m[ERR\u001b[0mOR Swap]: running with swap on`, symptom.SwapEnabled},
		{"tabs of rsyslog", "kubeadm: #011[ERROR#011Swap]: running with swap on", symptom.SwapEnabled},
		{"other letter case", "X509: CERTIFICATE SIGNED BY UNKNOWN AUTHORITY", symptom.X509UnknownAuthority},
		{"no text", "", ""},
		{"nothing but noise", strings.Repeat("ok\n", 1000), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found := judge(t, tt.text)
			var got symptom.ID
			if len(found) > 0 {
				got = found[0].Symptom
			}
			if got != tt.want {
				t.Errorf("got %v, want %q first", symptomsOf(found), tt.want)
			}
		})
	}
}

func TestJudgeReasons(t *testing.T) {
	const unsigned = `E1122 certificate_manager.go:596] "Failed while requesting a signed certificate from the control plane" ` +
		`err="cannot create certificate signing request: Unauthorized"` + "\n"
	const dropped = `{"level":"warn","msg":"prober detected unhealthy status","remote-peer-id":"2","error":"dial tcp 10.0.0.2:2380: i/o timeout"}` + "\n"
	refused := "[kubelet-check] dial tcp 127.0.0.1:10248: connect: connection refused\n"
	for _, tt := range []struct {
		name, text string
		want       []symptom.ID // in order
	}{
		{"a cause before what it brings about", refused + "error execution phase kubelet-start: timed out waiting for the condition\n" +
			"failed to run Kubelet: running with swap on is not supported\n", []symptom.ID{symptom.SwapEnabled,
			symptom.KubeletNotRunning, symptom.TLSBootstrapTimeout}},
		{"an etcd that cannot keep up is no registry",
			`{"level":"warn","msg":"failed to publish local member","error":"etcdserver: too many requests"}` + "\n",
			[]symptom.ID{symptom.EtcdSlow}},
		{"a registry that limits", "toomanyrequests: You have reached your limit\n", []symptom.ID{symptom.ImagePullFailure}},
		{"a kubelet that was refused once, by an API server that had just started", unsigned, nil},
		{"a kubelet that is refused again", unsigned + unsigned, []symptom.ID{symptom.TokenExpiredOrInvalid}},
		{"a warning alone", "\t[WARNING Swap]: swap is enabled; production deployments should disable swap\n", nil},
		{"a warning beside what it explains",
			"\t[WARNING Swap]: swap is enabled; production deployments should disable swap\n" + refused,
			[]symptom.ID{symptom.SwapEnabled, symptom.KubeletNotRunning}},
		{"a warning beside a particular cause",
			"\t[WARNING Swap]: swap is enabled; production deployments should disable swap\n" + refused +
				"kubelet cgroup driver: \"systemd\" is different from docker cgroup driver: \"cgroupfs\"\n",
			[]symptom.ID{symptom.CgroupDriverMismatch, symptom.KubeletNotRunning}},
		{"two refusals to promote", promote + "\n" + promote + "\n", nil},
		{"refusals that go on", strings.Repeat(promote+"\n", 10), []symptom.ID{symptom.EtcdLearnerNotInSync}},
		{"refusals far apart", "2025-01-01T10:00:00Z " + promote + "\n2025-01-01T10:01:00Z " + promote + "\n",
			[]symptom.ID{symptom.EtcdLearnerNotInSync}},
		{"refusals over midnight", "2025-01-01T23:59:50Z " + promote + "\n2025-01-02T00:01:00Z " + promote + "\n",
			[]symptom.ID{symptom.EtcdLearnerNotInSync}},
		{"a refusal that ended the join", "error execution phase etcd-join: " + promote + "\n",
			[]symptom.ID{symptom.EtcdLearnerNotInSync, symptom.EtcdUnreachable}},
		{"refusals and then success", strings.Repeat(promote+"\n",
			10) + "This node has joined the cluster and a new control plane instance was created:\n", nil},
		{"failure after success", "This node has joined the cluster:\nNetworkReady=false reason:NetworkPluginNotReady message:x\n",
			[]symptom.ID{symptom.CNINotInitialized}},
		{"the first attempt's cause", "[preflight] Running pre-flight checks\n" + refused + "[preflight] Running pre-flight checks\n" +
			"\t[ERROR Port-10250]: Port 10250 is in use\n\t[ERROR FileAvailable--etc-kubernetes-kubelet.conf]: exists\n",
			[]symptom.ID{symptom.KubeletNotRunning, symptom.LeftoverState, symptom.PortInUse}},
		{"leftovers of an attempt not seen", "[preflight] Running pre-flight checks\n\t[ERROR Port-10250]: Port 10250 is in use\n" +
			"\t[ERROR FileAvailable--etc-kubernetes-kubelet.conf]: exists\n" + refused, []symptom.ID{symptom.LeftoverState,
			symptom.PortInUse, symptom.KubeletNotRunning}},
		{"a guess about a kubelet that was healthy",
			"The kubelet is healthy after 1s\n- The kubelet is not running\nkube-apiserver is not healthy after 4m0s\n",
			[]symptom.ID{symptom.ControlPlaneCrashloop}},
		{"a short delay, twice", "took too long (151.5ms) to execute\ntook too long (120ms) to execute\n", nil},
		{"a long delay, twice", "\"msg\":\"slow fdatasync\",\"took\":\"7.4s\"\ntook too long (151.5ms) to execute\n",
			[]symptom.ID{symptom.EtcdSlow}},
		{"the runtime's start", "failed to load cni during init, please check CRI plugin status before setting up network for pods\n", nil},
		{"a pod that the authorizer does not know yet",
			"pods \"kube-proxy-1\" is forbidden: User \"system:node:w1\" cannot get resource \"pods\"" +
				" in the namespace \"kube-system\": no relationship found between node 'w1' and this object\n", nil},
		{"an API server that asks itself",
			"E1122 00:48:52.088099 1 typeconverter.go:83] \"Unhandled Error\" err=\"failed to fetch openapi paths: Get " +
				"\\\"https://[::1]:6443/openapi/v3\\\": net/http: TLS handshake timeout\"\n", []symptom.ID{symptom.APIServerUnreachable}},
		{"image capacity at the start", "invalid capacity 0 on image filesystem\n", nil},
		{"a pod network that fails", `plugin type="new" failed (add): no idea` + "\n", []symptom.ID{symptom.NetworkPluginPodsFailing}},
		{"a pod network that failed at the start", `plugin type="new" failed (add): no idea` + "\n" +
			`msg="RunPodSandbox for &PodSandboxMetadata{Name:coredns-1,} returns sandbox id \"f0\""` + "\n", nil},
		{"a host's pod that runs", `plugin type="new" failed (add): no idea` + "\n" +
			`msg="RunPodSandbox for &PodSandboxMetadata{Name:kube-proxy-1,} returns sandbox id \"f0\""` + "\n",
			[]symptom.ID{symptom.NetworkPluginPodsFailing}},
		{"all that a failed command hints at",
			"\t[WARNING HTTPProxy]: Connection to \"https://10.0.0.1\" uses proxy\n[kubelet-check] Initial timeout of 40s passed.\n" +
				"Unfortunately, an error has occurred:\n", []symptom.ID{symptom.ProxyInterference, symptom.TLSBootstrapTimeout}},
		{"a lease that was got after all",
			"Put \"https://10.0.0.1:6443/apis/x/leases\": dial tcp 10.0.0.1:6443: connect: connection refused\n" +
				"successfully acquired lease kube-system/kube-scheduler\n", nil},
		{"a peer that was dropped, and came back",
			dropped + dropped + `{"level":"info","msg":"peer became active","peer-id":"2"}` + "\n", nil},
		{"a peer that is dropped beside one that came back",
			dropped + `{"level":"info","msg":"peer became active","peer-id":"3"}` + "\n" + dropped,
			[]symptom.ID{symptom.FirewallBlocked}},
		{"crictl alone", "WARN[0000] runtime connect using default endpoints: [unix:///var/run/dockershim.sock]. As the default settings are now deprecated\n" +
			"ERRO[0000] dial unix /var/run/dockershim.sock: connect: no such file or directory\n",
			[]symptom.ID{symptom.CrictlEndpointUnset, symptom.CRIEndpointWrong}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := symptomsOf(unsuspected(judge(t, tt.text))); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// unsuspected leaves out the suspicions.
func unsuspected(found []symptom.Finding) []symptom.Finding {
	return slices.DeleteFunc(found, symptom.Finding.Suspected)
}

func TestGuessOfAPiece(t *testing.T) {
	const plaint = "Jan 01 10:00:00 w1 etcd[1]: frobnicator failed to reach the quorum of members in the cluster\n"
	if found := judge(t, plaint); len(found) == 0 || found[0].Symptom != symptom.EtcdNoQuorum || found[0].Level != symptom.Warn ||
		found[0].Repairable {
		t.Errorf("of a piece of a log: %+v", found)
	}
	for _, calm := range []string{
		plaint + "Jan 01 10:00:01 w1 etcd[1]: the frobnicator was mended successfully\n",
		plaint + strings.Repeat("Jan 01 10:00:01 w1 etcd[1]: and so on\n", 30),
		"Jan 01 10:00:00 w1 cupsd[1]: frobnicator failed to print\n",
	} {
		if found := judge(t, calm); len(found) > 0 {
			t.Errorf("found %v in %q", symptomsOf(found), calm)
		}
	}
}

func TestSuspicions(t *testing.T) {
	found := judge(t, "kubelet[1]: dial tcp 127.0.0.1:10248: connect: connection refused\n")
	if len(found) != 3 || found[0].Symptom != symptom.KubeletNotRunning || found[0].Level != symptom.Fail {
		t.Fatalf("found %v", symptomsOf(found))
	}
	for _, f := range found[1:] {
		if f.Level != symptom.Warn || f.Repairable || f.BecauseOf != symptom.KubeletNotRunning || len(f.Evidence) != 1 {
			t.Errorf("suspicion %+v", f)
		}
	}
}

func TestFinding(t *testing.T) {
	const text = "\nMar 03 08:11:20 w2 kubelet[2231]: dial tcp 127.0.0.1:10248: connect: connection refused\n" +
		"Mar 03 08:11:22 w2 kubelet[2231]: failed to run Kubelet: running with swap on is not supported\n"
	found, err := Judge(strings.NewReader(text), "w2.log", event.Redact)
	if found = unsuspected(found); err != nil || len(found) != 2 {
		t.Fatalf("found %v, error %v", found, err)
	}
	swap, _ := symptom.Lookup(symptom.SwapEnabled)
	f := found[0]
	want := symptom.Evidence{Source: "w2.log kubelet", Line: 3, Time: "Mar 03 08:11:22",
		Text: "Mar 03 08:11:22 w2 kubelet[2231]: failed to run Kubelet: running with swap on is not supported"}
	if f.Symptom != symptom.SwapEnabled || f.Level != symptom.Fail || f.Node != "w2" || f.Meaning != swap.Meaning ||
		f.Hint != swap.Hint || !f.Repairable || f.BecauseOf != "" {
		t.Errorf("first finding: %+v", f)
	}
	if len(f.Evidence) != 1 || f.Evidence[0] != want {
		t.Errorf("evidence %+v, want %+v", f.Evidence, want)
	}
	if found[1].Symptom != symptom.KubeletNotRunning || found[1].BecauseOf != symptom.SwapEnabled {
		t.Errorf("second finding: %+v", found[1])
	}
}

func TestEvidenceHasNoSecrets(t *testing.T) {
	const token, key = "abcdef.0123456789abcdef", "6bd1a5a1b3a3d8f1e0c9b7a65443322110ffeeddccbbaa99887766554433221f"
	pad := strings.Repeat("x ", 40_000) // beyond the longest piece that is looked at as one
	for _, text := range []string{
		"kubeadm join --token " + token + " --certificate-key " + key + ": could not find a JWS signature in the cluster-info ConfigMap",
		pad[:pieceLimit-12] + token + " could not find a JWS signature in the cluster-info ConfigMap " + pad,
		pad[:pieceLimit-30] + key + " could not find a JWS signature in the cluster-info ConfigMap",
		strings.Repeat("x", pieceLimit-12) + token + strings.Repeat("x", 200) + "couldnotfindaJWSsignatureinthecluster-infoConfigMap",
		strings.Repeat("x", pieceLimit-300) + "couldnotfindaJWSsignatureinthecluster-infoConfigMap" + strings.Repeat("x", 230) + token,
		"token: " + strings.Repeat("y", 390) + " could not find a JWS signature in the cluster-info ConfigMap",
	} {
		found, err := Judge(strings.NewReader(text), "text", event.Redact)
		if err != nil || len(found) == 0 {
			t.Fatalf("found %v, error %v", found, err)
		}
		for _, e := range found[0].Evidence {
			if strings.Contains(e.Text, "0123456789") || strings.Contains(e.Text, key[5:25]) || strings.Contains(e.Text, key[40:60]) ||
				strings.Contains(e.Text, "9abcdef") || strings.Contains(e.Text, "yyyyyyyy") {
				t.Errorf("a secret in the evidence: %s", e.Text)
			}
		}
	}
}

func TestJudgeOfABrokenReader(t *testing.T) {
	broken := errors.New("cable pulled")
	found, err := Judge(io.MultiReader(strings.NewReader("[ERROR Swap]: running with swap on\n"), iotest.ErrReader(broken)), "text",
		event.Redact)
	if found = unsuspected(found); !errors.Is(err, broken) || len(found) != 1 || found[0].Symptom != symptom.SwapEnabled {
		t.Errorf("found %v, error %v", symptomsOf(found), err)
	}
}

func TestCertain(t *testing.T) {
	for _, tt := range []struct {
		line string
		want symptom.ID
	}{
		{"error execution phase etcd-join: etcdserver: too many learner members in cluster", symptom.EtcdTooManyLearners},
		{`couldn't validate the identity: could not find a JWS signature in the cluster-info ConfigMap for token ID "abcdef"`,
			symptom.TokenExpiredOrInvalid},
		{`the token ID "abcdef" is invalid for this cluster or it has expired`, symptom.TokenExpiredOrInvalid},
		{`cluster CA found in cluster-info ConfigMap is invalid: none of the public keys "sha256:00" are pinned`,
			symptom.CACertHashMismatch},
		{`Secret "kubeadm-certs" was not found in the "kube-system" Namespace. This Secret might have expired.`,
			symptom.CertificateKeyExpired},
		{"error decoding secret data with provided key: cipher: message authentication failed", symptom.CertificateKeyInvalid},
		{"/bin/sh: 1: kubeadm: not found", symptom.KubeBinariesMissing},
		{"dial unix /run/containerd/containerd.sock: connect: no such file or directory", symptom.RuntimeSocketMissing},
		{"unknown service runtime.v1.RuntimeService", symptom.CRIPluginDisabled},
		{`a Node with name "w1" and status "Ready" already exists in the cluster. You must delete the existing Node`,
			symptom.NodeNameExists},
		{`Get "https://cp:6443/api": dial tcp: lookup cp on 127.0.0.53:53: no such host`, symptom.DNSResolutionFailure},
		{"[ERROR KubeletVersion]: the kubelet version is higher than the control plane version", symptom.VersionSkew},
		{`"Unable to register node with API server" err="Internal error occurred: failed calling webhook \"nodes.example.com\": EOF" node="w2"`, ""},
		{"[WARNING Hostname]: hostname \"w1\": lookup w1 on 192.0.2.1:53: no such host", ""},
		{"etcdserver: can only promote a learner member which is in sync with leader", ""},
		{"dial tcp 10.30.0.10:6443: connect: connection refused", ""},
		{`"Unhandled Error" err="unable to read existing bootstrap client config from /etc/kubernetes/kubelet.conf: invalid configuration: [unable to read client-cert ` +
			`/var/lib/kubelet/pki/kubelet-client-current.pem for default-auth due to open /var/lib/kubelet/pki/kubelet-client-current.pem: no such file or directory"`, ""},
		{"", ""},
	} {
		if got, ok := Certain(tt.line); got != tt.want || ok != (tt.want != "") {
			t.Errorf("Certain(%q) = %q, %v, want %q", tt.line, got, ok, tt.want)
		}
	}
}

func TestCertainNeverOnHealthyLines(t *testing.T) {
	lines := 0
	for _, ex := range corpus(t) {
		// These two show a failed attempt before the one that succeeded, and a kubelet that waited for its join.
		if ex.want != symptom.Healthy || strings.Contains(ex.name, "second-attempt") {
			continue
		}
		for line := range strings.Lines(ex.text) {
			lines++
			if id, ok := Certain(line); ok {
				t.Errorf("%s: Certain(%q) = %s", ex.name, line, id)
			}
		}
	}
	if lines < 100 {
		t.Errorf("only %d healthy lines", lines)
	}
}
