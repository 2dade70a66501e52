package reader

import (
	"slices"
	"strings"
	"testing"

	"k8slab/lab/symptom"
)

func TestDetail(t *testing.T) {
	refusals := strings.Repeat(promote+"\n", 10)
	for _, tt := range []struct{ text, want string }{
		{refusals, ""},
		{refusals + "8e9e05c52164694d, unstarted, , https://192.0.2.12:2380, , true\n", symptom.NeverStarted},
		{refusals + `{"msg":"dial tcp 192.0.2.12:2380: i/o timeout"}` + "\n", symptom.PeerPortBlocked},
		{refusals + "member added with peer URL https://127.0.1.1:2380\n", symptom.WrongAddress},
		{refusals + `{"level":"warn","msg":"slow fdatasync","took":"2.4s"}` + "\n", symptom.SlowDisk},
		{refusals + `{"level":"info","msg":"sending database snapshot","total-size":"2.1 GB"}` + "\n", symptom.CatchingUp},
		{strings.Repeat("etcdserver: can only promote a learner member\n", 10), symptom.AlreadyPromoted},
		// kubeadm 1.36 waits for the start before it promotes.
		{"error: error execution phase etcd-join: error creating local etcd static pod manifest file: the etcd member 893b79db105c9232 is not started\n", symptom.NeverStarted},
	} {
		found := judge(t, tt.text)
		i := slices.IndexFunc(found, func(f symptom.Finding) bool { return f.Symptom == symptom.EtcdLearnerNotInSync })
		if i < 0 {
			t.Errorf("%q: learner-not-in-sync not found", tt.text)
		} else if got := found[i].Detail; got != tt.want {
			t.Errorf("%q: detail %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestGuess(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       symptom.ID
	}{
		{"a pasted complaint", "FATAL: my new tool cannot talk SELinux today", symptom.SELinuxDenied},
		{"what ended a command", "[preflight] Running pre-flight checks\nerror execution phase new-phase: learner woes: failed\n",
			symptom.EtcdLearnerNotInSync},
		{"a warning", "[WARNING New]: swap is unlike what it was", ""},
		{"a log that complains now and then", strings.Repeat("E0101 10:00:00.000000  1 a.go:1] failed: cgroup odd\n"+
			strings.Repeat("I0101 10:00:01.000000  1 b.go:1] went on\n", 3), 20), ""},
		{"an excerpt of a log", strings.Repeat("E0101 10:00:00.000000  1 a.go:1] failed: cgroup odd\n", 5), symptom.CgroupDriverMismatch},
	} {
		found := judge(t, tt.text)
		if tt.want == "" {
			if len(found) > 0 {
				t.Errorf("%s: %v", tt.name, symptomsOf(found))
			}
			continue
		}
		if len(found) == 0 || found[0].Symptom != tt.want || found[0].Repairable {
			t.Errorf("%s: %+v, want a guess of %s", tt.name, found, tt.want)
		}
	}
}
