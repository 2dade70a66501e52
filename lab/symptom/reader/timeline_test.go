package reader

import (
	"slices"
	"strings"
	"testing"

	"k8slab/lab/symptom"
)

const (
	checks     = "[preflight] Running pre-flight checks\n"
	swapped    = checks + "error execution phase preflight: [preflight] Some fatal errors occurred:\n\t[ERROR Swap]: running with swap on is not supported\n"
	goesOn     = checks + "[preflight] Reading configuration from the cluster...\n[kubelet-start] Starting the kubelet\n"
	noToken    = "error execution phase preflight: could not find a JWS signature in the cluster-info ConfigMap for token ID \"abcdef\"\n"
	portUsed   = "error execution phase kubelet-start: listen tcp :10250: bind: address already in use\n"
	gaveUp     = "[kubelet-start] Starting the kubelet\nerror execution phase kubelet-start: error uploading crisocket: timed out waiting for the condition\n"
	joinAgain  = "# kubeadm join 192.0.2.10:6443\n"
	unanswered = "dial tcp 192.0.2.10:6443: connect: connection refused"
	noPull     = "FATA[0030] pulling image: failed to pull and unpack image \"registry.k8s.io/pause:3.9\": " + "i/o timeout\n"
	crashed    = "Jan 10 10:00:00 w1 systemd[1]: Started kubelet: The Kubernetes Node Agent.\n" +
		"Jan 10 10:00:01 w1 kubelet[11]: F0110 10:00:01.0 11 server.go:1] failed to run Kubelet: "
	refusedTask = `fatal: [w1]: FAILED! => {"msg": "non-zero return code", "rc": 1, "stderr": "error execution phase preflight: ` + unanswered + `"}` + "\n"
)

// The cause that ended the last run comes first, and what a later run got over is past.
func TestTimeline(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       symptom.ID // the first finding, "" for none
	}{
		{"a step's name before what happened", "error execution phase control-plane-prepare/download-certs: error downloading certs: Get " +
			`"https://192.0.2.10:6443/api/v1/namespaces/kube-system/secrets": ` + unanswered + "\n", symptom.APIServerUnreachable},
		{"a step's name alone", "error execution phase control-plane-prepare/download-certs: error downloading certs: no idea\n",
			symptom.CertificateKeyExpired},
		{"a check that was ignored", checks + "\t[WARNING Port-10250]: Port 10250 is in use\n" + gaveUp, symptom.PortInUse},
		{"a check that only warns", checks + "\t[WARNING FileExisting-conntrack]: conntrack not found in system path\n" + gaveUp,
			symptom.TLSBootstrapTimeout},
		{"an ignored check, and another failure", checks + "\t[WARNING Port-10250]: Port 10250 is in use\n" + noToken,
			symptom.TokenExpiredOrInvalid},
		{"a warning that ends before the error", "W0601 07:55:38.9 97 join.go:346] [preflight] WARNING: some settings will be ignored when the flag is not set.\n" +
			"discovery.bootstrapToken.token: Invalid value: \"\": the bootstrap token is invalid\n", symptom.TokenExpiredOrInvalid},
		{"two runs with two errors", joinAgain + swapped + "# swapoff -a\n" + joinAgain + checks + noToken, symptom.TokenExpiredOrInvalid},
		{"two errors of runs without a beginning", noToken + portUsed, symptom.PortInUse},
		{"a kubelet with two errors", crashed + "running with swap on is not supported\n" + crashed +
			"part of the existing bootstrap client certificate is expired: 2023-12-01 00:00:00 +0000 UTC\n", symptom.CertificateExpired},
		{"a run that stopped, and one that goes on", swapped + goesOn, ""},
		{"a run that stopped, and one that has begun", swapped + checks, symptom.SwapEnabled},
		{"a run that gave up, and one that goes on", checks + gaveUp + goesOn, symptom.TLSBootstrapTimeout},
		{"the same command again, with success", "# crictl pull pause\n" + noPull + "# crictl pull pause\nImage is up to date\n", ""},
		{"the same command again, without a word", "# crictl pull pause\n" + noPull + "# crictl pull pause\n", symptom.ImagePullFailure},
		{"the same command again, with the same error", strings.Repeat("me@w1:~$ sudo crictl pull pause\n"+noPull, 2), symptom.ImagePullFailure},
		{"another command with success", "# crictl pull pause\n" + noPull + "# crictl version\nVersion: 0.1.0\n", symptom.ImagePullFailure},
		{"a host that came through", refusedTask + "w1        : ok=20 changed=3 unreachable=0 failed=0 skipped=28 rescued=1\n", ""},
		{"another host that came through", refusedTask + "w2        : ok=20 changed=3 unreachable=0 failed=0 skipped=28 rescued=1\n",
			symptom.APIServerUnreachable},
		{"discovery that is tried again", checks + "failed to request cluster-info: " + unanswered + "\n" +
			"[discovery] Cluster info signature and contents are valid, will use API Server\n", ""},
		{"a request that is tried again", "W0101 10:00:01.0 1 a.go:1] no answer yet, will retry: " + unanswered + "\n" +
			"I0101 10:00:02.0 1 a.go:2] connected\nI0101 10:00:02.1 1 a.go:3] going on\n", ""},
		{"a request that is tried again, at the end", "W0101 10:00:01.0 1 a.go:1] no answer yet, will retry: " + unanswered + "\n",
			symptom.APIServerUnreachable},
		{"a snapshotter that is not needed", "Dec 19 14:47:44 w1 containerd[4]: level=warning msg=\"failed to load plugin io.containerd.snapshotter.v1.aufs\" " +
			"error=\"modprobe aufs failed: modprobe: FATAL: Module aufs not found\"\n", ""},
	} {
		got := symptomsOf(unsuspected(judge(t, tt.text)))
		if first := slices.Concat(got, []symptom.ID{""})[0]; first != tt.want {
			t.Errorf("%s: %v, want %q first", tt.name, got, tt.want)
		}
	}
}

// A failure is what a line states. A guess is a warning, and cites nothing that somebody tells.
func TestOnlyStatedCausesFail(t *testing.T) {
	for name, text := range map[string]string{
		"a guess of what ended a command": "error execution phase frobnicate: the etcd members have lost their quorum, gizmo\n",
		"a weak sign":                     checks + "[kubelet-check] Initial timeout of 40s passed.\nUnfortunately, an error has occurred:\n",
	} {
		read, err := Read(strings.NewReader(text), "text", func(s string) string { return s })
		if err != nil || len(read.Findings) == 0 || read.Undetermined == nil {
			t.Errorf("%s: %v, undetermined %v, error %v", name, symptomsOf(read.Findings), read.Undetermined, err)
		}
		for _, f := range read.Findings {
			if f.Level != symptom.Warn {
				t.Errorf("%s: %s fails", name, f.Symptom)
			}
		}
	}
	for _, f := range judge(t, "My etcd members cannot reach the quorum any more, and I think the firewall is wrong.\n") {
		if f.Level != symptom.Warn || len(f.Evidence) > 0 {
			t.Errorf("of a story: %+v", f)
		}
	}
}

func TestUndetermined(t *testing.T) {
	const unknown = "2026-01-01T10:00:01Z ERROR gizmo 7 exploded\n"
	for _, tt := range []struct {
		name, text string
		line       int // that is cited, 0 for none
	}{
		{"an unknown error", "all is well\n" + unknown, 2},
		{"a known error", unknown + swapped, 0},
		{"no error", "all is well\n", 0},
		{"an error that is harmless", "E0101 10:00:00.0 1 kubelet.go:1] Image garbage collection failed once. Stats initialization may not have completed yet\n", 0},
		{"an error before success", unknown + "This node has joined the cluster:\n", 0},
		{"an error before success of the same command", "# gizmo start\n" + unknown + "# gizmo start\nstarted\n", 0},
		{"an error before success of another command", "# gizmo start\n" + unknown + "# gizmo version\n7\n", 2},
	} {
		read, err := Read(strings.NewReader(tt.text), "text", func(s string) string { return s })
		line := 0
		if read.Undetermined != nil {
			line = read.Undetermined.Line
		}
		if err != nil || line != tt.line {
			t.Errorf("%s: line %d, want %d, error %v", tt.name, line, tt.line, err)
		}
	}
}
