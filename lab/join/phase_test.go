package join

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestParseLine(t *testing.T) {
	tests := []struct {
		name, raw string
		phase     Phase
		text      string
		readable  bool
	}{
		{"a phase", "[preflight] Running pre-flight checks", "preflight", "[preflight] Running pre-flight checks", true},
		{"kubelet-check of 1.30", "[kubelet-check] Initial timeout of 40s passed.", "kubelet-check", "[kubelet-check] Initial timeout of 40s passed.", true},
		{"kubelet-check of 1.36", "[kubelet-check] The kubelet is healthy after 501.2ms", "kubelet-check", "[kubelet-check] The kubelet is healthy after 501.2ms", true},
		{"a log line about etcd", `I0301 10:11:12.131415    4242 etcd.go:496] [etcd] Adding etcd member "https://10.30.0.12:2380" as learner`, "etcd",
			`[etcd] Adding etcd member "https://10.30.0.12:2380" as learner`, true},
		{"a log line about nothing", "I0301 10:11:12.131415    4242 initconfiguration.go:122] detected and using CRI socket: unix:///run/containerd/containerd.sock", "",
			"detected and using CRI socket: unix:///run/containerd/containerd.sock", false},
		{"why discovery fails", `I0301 10:11:12.131415    4242 token.go:249] [discovery] Retrying due to error: could not find a JWS signature in the cluster-info ConfigMap for token ID "abcdef"`,
			"discovery", `[discovery] Retrying due to error: could not find a JWS signature in the cluster-info ConfigMap for token ID "abcdef"`, true},
		{"the end", "error: error execution phase kubelet-start: a Node with name \"w1\" and status \"Ready\" already exists in the cluster.", "kubelet-start",
			"error: error execution phase kubelet-start: a Node with name \"w1\" and status \"Ready\" already exists in the cluster.", true},
		{"a subphase", "error execution phase control-plane-prepare/download-certs: x", "control-plane-prepare/download-certs", "error execution phase control-plane-prepare/download-certs: x", true},
		{"a warning is no phase", "\t[WARNING Swap]: swap is supported for cgroup v2 only.", "", "\t[WARNING Swap]: swap is supported for cgroup v2 only.", true},
		{"a frame's function", "k8s.io/kubernetes/cmd/kubeadm/app/cmd/phases/workflow.(*Runner).Run.func1", "", "k8s.io/kubernetes/cmd/kubeadm/app/cmd/phases/workflow.(*Runner).Run.func1", false},
		{"a frame's file", "\tk8s.io/kubernetes/cmd/kubeadm/app/cmd/join.go:137", "", "\tk8s.io/kubernetes/cmd/kubeadm/app/cmd/join.go:137", false},
		{"the last frame", "runtime.goexit", "", "runtime.goexit", false},
		{"an empty line", "", "", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := parseLine(tt.raw)
			if l.phase != tt.phase || l.text != tt.text || l.readable() != tt.readable {
				t.Errorf("got %+v, readable %t", l, l.readable())
			}
		})
	}
}

// etcdLines are the lines of kubeadm 1.36.3 at -v=5 around its learner (phases/etcd/local.go, util/etcd/etcd.go).
var etcdLines = struct{ adding, tooMany, timeout, announced, manifest, waitStart, notStarted, promoting, notInSync, promoted, waiting, skipped string }{
	adding:     `[etcd] Adding etcd member "https://10.30.0.12:2380" as learner`,
	tooMany:    `Failed to add etcd member: etcdserver: too many learner members in cluster`,
	timeout:    `Failed to add etcd member: context deadline exceeded`,
	announced:  `[etcd] Announced new etcd member joining to the existing etcd cluster`,
	manifest:   `[etcd] Creating static Pod manifest for "etcd"`,
	waitStart:  `[etcd] Waiting for a learner to start: 8e9e05c52164694d`,
	notStarted: `[etcd] Member 8e9e05c52164694d is not started yet. Waiting for it to be started.`,
	promoting:  `[etcd] Promoting a learner as a voting member: 8e9e05c52164694d`,
	notInSync:  `[etcd] Promoting the learner 8e9e05c52164694d failed: etcdserver: can only promote a learner member which is in sync with leader`,
	promoted:   `[etcd] The learner was promoted as a voting member: 8e9e05c52164694d`,
	waiting:    `[etcd] Waiting for the new etcd member to join the cluster. This can take up to 40s`,
	skipped:    `The peer URL "https://10.30.0.12:2380" for the added etcd member already exists. Skipping etcd member addition`,
}

func TestLearnerWindow(t *testing.T) {
	e := etcdLines
	tests := []struct {
		name        string
		lines       []string
		open, added bool
	}{
		{"nothing yet", []string{"[preflight] Running pre-flight checks", "[etcd] Adding etcd member: https://10.30.0.12:2380"}, false, false},
		{"the call is under way", []string{e.adding}, true, false},
		{"refused: another's learner", []string{e.adding, e.tooMany}, false, false},
		{"refused, as etcd's client logs it", []string{e.adding, `{"level":"warn","msg":"retrying of unary invoker failed","error":"rpc error: code = FailedPrecondition desc = etcdserver: too many learner members in cluster"}`}, false, false},
		{"refused and tried again", []string{e.adding, e.tooMany, e.adding}, true, false},
		{"no answer proves nothing", []string{e.adding, e.timeout}, true, false},
		{"added", []string{e.adding, e.announced}, true, true},
		{"added, and another's learner in somebody's log", []string{e.adding, e.announced, e.tooMany}, true, true},
		{"it was there already", []string{e.skipped}, true, true},
		{"starting", []string{e.adding, e.announced, e.manifest, e.waitStart, e.notStarted}, true, true},
		{"catching up", []string{e.adding, e.announced, e.waitStart, e.promoting, e.notInSync}, true, true},
		{"promoted", []string{e.adding, e.announced, e.waitStart, e.promoting, e.promoted}, false, true},
		{"promoted, told by the next step only", []string{e.adding, e.announced, e.waiting}, false, true},
		{"promoted by somebody else", []string{e.skipped, e.waitStart, "[etcd] Member 8e9e05c52164694d was already promoted."}, false, true},
		{"nothing opens it again", []string{e.announced, e.promoted, e.adding, e.waitStart}, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var w learnerWindow
			for _, l := range tt.lines {
				w.see(l)
			}
			if w.open() != tt.open || w.added() != tt.added {
				t.Errorf("open %t, added %t", w.open(), w.added())
			}
		})
	}
}

func TestOutputKeepsTheReadableEndAndNoSecret(t *testing.T) {
	var log strings.Builder
	o := &output{log: &log}
	for _, raw := range []string{
		"[preflight] token " + testToken, "I0301 10:11:12.131415    4242 x.go:1] noise", "k8s.io/kubernetes/cmd/x.Run", "\tk8s.io/kubernetes/cmd/x.go:7",
		"-----BEGIN RSA PRIVATE KEY-----", "MIIEpAIBAAKCAQEA7", "-----END RSA PRIVATE KEY-----", "key " + testKey,
	} {
		o.add(raw, parseLine(raw))
	}
	for _, secret := range []string{"0123456789abcdef", testKey, "MIIEpAIBAAKCAQEA7"} {
		if strings.Contains(log.String(), secret) || strings.Contains(o.text(), secret) {
			t.Errorf("%s is in the output", secret)
		}
	}
	if !strings.Contains(log.String(), "noise") || strings.Contains(o.text(), "noise") || strings.Contains(o.text(), "x.go:7") {
		t.Errorf("log:\n%s\nshown:\n%s", log.String(), o.text())
	}
	for i := range 100 {
		o.add("[x] line", line{text: "[x] line", phase: "x"})
		if i > tailLines && len(o.tail) != tailLines {
			t.Fatalf("%d lines are kept", len(o.tail))
		}
	}
}

func TestRepeatsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRepeats()
		shown := []string{}
		for i := range 25 { // twice a second
			if s := r.show(etcdLines.tooMany); s != "" {
				shown = append(shown, s)
			}
			if i == 3 && r.show("another") != "another" {
				t.Error("another line is held back")
			}
			time.Sleep(500 * time.Millisecond)
		}
		if len(shown) != 2 || !strings.HasSuffix(shown[1], "(20 times more)") {
			t.Errorf("%q", shown)
		}
	})
}
