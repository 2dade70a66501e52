package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"k8slab/lab/symptom"
)

// Every kind is about equally likely, and so is every node; the same seed plans the same round.
func TestPlannedDamage(t *testing.T) {
	const rounds = 6000
	kinds, nodes, ways := map[string]int{}, map[string]int{}, map[string]int{}
	for n := range rounds {
		p, err := planned(7, n, members(3, 2))
		again, _ := planned(7, n, members(3, 2))
		if err != nil || p.name != again.name || p.node != again.node || p.group.name != again.group.name || p.how != again.how {
			t.Fatalf("round %d is %+v and %+v, %v", n, p, again, err)
		}
		if (p.node == "") != (p.name == "object") {
			t.Errorf("round %d: a damage of kind %s on %q", n, p.name, p.node)
		}
		kinds[p.name]++
		nodes[p.node]++
		ways[p.name+" "+p.group.name+" "+p.how]++
	}
	for _, k := range damageKinds {
		if got, want := kinds[k.name], rounds/len(damageKinds); got < want*85/100 || got > want*115/100 {
			t.Errorf("%s: %d of %d rounds", k.name, got, rounds)
		}
		for _, g := range k.groups {
			for _, how := range g.ways {
				if ways[k.name+" "+g.name+" "+how] == 0 {
					t.Errorf("never: %s %s %s", k.name, g.name, how)
				}
			}
		}
	}
	if len(nodes) != 6 || nodes["cp1"] < rounds/8 {
		t.Errorf("nodes: %v", nodes)
	}
	same := map[string]int{}
	for n := range 50 {
		a, _ := planned(7, n, members(3, 2))
		for what, number := range map[string][2]int{"seed": {8, n}, "number": {7, n + 1}} {
			if b, _ := planned(uint64(number[0]), number[1], members(3, 2)); a.name == b.name && a.node == b.node && a.how == b.how {
				same[what]++
			}
		}
	}
	if same["seed"] > 10 || same["number"] > 10 {
		t.Errorf("the same in 50 rounds though another is: %v", same)
	}
}

// With fewer than three control planes the loss of one would lose the cluster's data.
func TestPlannedDamageSparesTheQuorum(t *testing.T) {
	for n := range 500 {
		if p, err := planned(1, n, members(2, 1)); err != nil || p.node != "w1" && p.node != "" {
			t.Fatalf("round %d damages %q, %v", n, p.node, err)
		}
	}
	if _, err := planned(1, 1, members(1, 0)); err == nil {
		t.Error("the only control plane may be damaged")
	}
}

func TestChosenDamageStays(t *testing.T) {
	var things []string
	for i := range 40 {
		things = append(things, fmt.Sprintf("/usr/bin/program-%c", 'A'+i))
	}
	counts := map[string]int{}
	for n := range 400 {
		what := chosen(3, n, things)
		counts[what]++
		rest := slices.DeleteFunc(slices.Clone(things), func(s string) bool { return s != what && (len(s)+n)%2 == int(s[len(s)-1])%2 })
		slices.Reverse(rest)
		if again := chosen(3, n, rest); again != what {
			t.Errorf("round %d chooses %s, and %s where others are gone", n, what, again)
		}
	}
	if len(counts) != len(things) {
		t.Errorf("%d of %d things are ever chosen: %v", len(counts), len(things), counts)
	}
}

func TestPortsOf(t *testing.T) {
	const ss = `tcp   LISTEN 0      4096       127.0.0.1:10248      0.0.0.0:*
tcp   LISTEN 0      4096       127.0.0.1:38811      0.0.0.0:*
udp   UNCONN 0      0            0.0.0.0:8472       0.0.0.0:*
tcp   LISTEN 0      128          0.0.0.0:22         0.0.0.0:*
tcp   LISTEN 0      128             [::]:22            [::]:*
tcp   LISTEN 0      4096               *:10250            *:*
`
	if got := strings.Join(portsOf(ss), " "); got != "tcp/10248 tcp/10250 tcp/22 udp/8472" {
		t.Errorf("got %s", got)
	}
	const connected = `tcp   0      0               10.0.0.21:47010         10.0.0.10:6443
tcp   0      0               10.0.0.21:10250         10.0.0.12:40112
`
	if got := strings.Join(portsOf(connected), " "); got != "tcp/6443" {
		t.Errorf("connected to %s", got)
	}
}

// What names the thing counts, and what is of its component; on another node, or as a warning or suspicion, it does not.
func TestNames(t *testing.T) {
	file := func(path string) Damage { return Damage{Kind: "file", How: "delete", Node: "w1", What: path} }
	object := func(what string) Damage { return Damage{Kind: "object", How: "delete", What: what} }
	net := func(how, what string) Damage { return Damage{Kind: "net", How: how, Node: "cp1", What: what} }
	fails := func(id symptom.ID, node string, evidence ...string) symptom.Finding {
		f := symptom.Finding{Symptom: id, Level: symptom.Fail, Node: node}
		for _, e := range evidence {
			f.Evidence = append(f.Evidence, symptom.Evidence{Source: "journal", Text: e})
		}
		return f
	}
	of := func(f symptom.Finding, detail string) symptom.Finding { f.Detail = detail; return f }
	rulesOut := func(f symptom.Finding, text string) symptom.Finding {
		f.Evidence = append(f.Evidence, symptom.Evidence{Source: "ruled out", Text: text})
		return f
	}
	warned := fails(symptom.RuntimeSocketMissing, "w1")
	warned.Level = symptom.Warn
	tests := []struct {
		damage  Damage
		finding symptom.Finding
		want    bool
	}{
		{file("/usr/bin/containerd"), fails(symptom.RuntimeSocketMissing, "w1"), true},
		{file("/usr/bin/containerd"), fails(symptom.RuntimeSocketMissing, "w2"), false},
		{file("/usr/bin/containerd"), fails(symptom.KubeletNotRunning, "w1"), false},
		{file("/usr/bin/containerd"), warned, false},
		{file("/usr/bin/containerd"), symptom.Suspicion(symptom.CRIEndpointWrong, fails(symptom.RuntimeSocketMissing, "w1")), false},
		{file("/usr/bin/runc"), of(fails(symptom.Unexplained, "w1"), "sandbox"), true},
		{file("/usr/bin/runc"), of(fails(symptom.Unexplained, "w1", "no runc here"), "file systems"), false},
		{file("/usr/bin/runc"), of(fails(symptom.Unexplained, "w1", "exec: /usr/bin/runc: not found"), "disk"), true},
		{file("/usr/bin/runc"), fails(symptom.FileChanged, "w1", "/usr/bin/runc is not as in the image."), true},
		{file("/usr/bin/runc"), fails(symptom.FileChanged, "w1", "/usr/bin/runc.old is not as in the image"), false},
		{file("/usr/bin/runc"), fails(symptom.FileChanged, "", "w1: /usr/bin/runc"), true},
		{file("/usr/bin/runc"), fails(symptom.FileChanged, "", "w10: /usr/bin/runc"), false},
		{file("/usr/bin/kubelet"), fails(symptom.KubeletNotRunning, "w1"), true},
		{file("/usr/bin/kubeadm"), fails(symptom.KubeBinariesMissing, "w1"), true},
		{file("/usr/bin/perl"), fails(symptom.KubeletNotRunning, "w1"), false},
		{file("/usr/bin/bash"), fails(symptom.NodeUnreachable, "w1"), true},
		{file("/var/lib/kubelet/config.yaml"), fails(symptom.KubeletConfigMissing, "w1"), true},
		{file("/etc/kubernetes/pki/etcd/server.crt"), fails(symptom.EtcdUnreachable, "w1"), true},
		{file("/etc/kubernetes/pki/apiserver.crt"), fails(symptom.EtcdUnreachable, "w1"), false},
		{file("/etc/kubernetes/pki/apiserver.crt"), fails(symptom.CertificateExpired, "w1"), true},
		{file("/etc/kubernetes/manifests/kube-scheduler.yaml"), fails(symptom.ControlPlaneCrashloop, "w1"), true},
		{file("/opt/cni/bin/bridge"), fails(symptom.CNIPluginBinaryMissing, "w1"), true},
		{Damage{Kind: "unit", How: "mask", Node: "w1", What: "containerd.service"}, fails(symptom.RuntimeSocketMissing, "w1"), true},
		{Damage{Kind: "unit", How: "mask", Node: "w1", What: "a.service"}, fails(symptom.FileChanged, "w1", "/etc/systemd/system/a.service: it masks"), true},
		{Damage{Kind: "unit", How: "mask", Node: "w1", What: "a.service"}, fails(symptom.FileChanged, "w1", "/etc/systemd/system/ba.service: it masks"), false},
		{Damage{Kind: "unit", How: "stop", Node: "w1", What: "ssh.service"}, fails(symptom.NodeUnreachable, "w1"), true},
		{Damage{Kind: "unit", How: "stop", Node: "w1", What: "ssh.service"}, fails(symptom.RuntimeSocketMissing, "w1"), false},
		{Damage{Kind: "image", How: "remove", Node: "w1", What: "registry.k8s.io/kube-proxy:v1.36.0"}, fails(symptom.ImagePullFailure, "w1"), true},
		{Damage{Kind: "image", How: "remove", Node: "w1", What: "registry.k8s.io/kube-proxy:v1.36.0"}, fails(symptom.KubeProxyCrash, "w1"), true},
		{Damage{Kind: "image", How: "remove", Node: "w1", What: "registry.k8s.io/pause:3.10"}, fails(symptom.SandboxImageMisconfigured, "w1"), true},
		{Damage{Kind: "disk", How: "fill", Node: "w1", What: kubeletDirectory}, fails(symptom.DiskFull, "w1"), true},
		{Damage{Kind: "disk", How: "fill", Node: "w1", What: kubeletDirectory}, fails(symptom.KubeletNotRunning, "w1"), false},
		{net("drop-in", "tcp/2380"), fails(symptom.EtcdUnreachable, "cp1"), true},
		{net("drop-in", "tcp/2380"), fails(symptom.FirewallBlocked, "cp1"), true},
		{net("drop-in", "tcp/2380"), fails(symptom.FirewallBlocked, "cp2"), false},
		{net("drop-in", "tcp/10250"), fails(symptom.EtcdUnreachable, "cp1"), false},
		{net("drop-in", "tcp/22"), fails(symptom.Unexplained, "cp1", "dial 10.0.0.11:22: timeout"), true},
		{net("drop-in", "tcp/22"), fails(symptom.Unexplained, "cp1", "it took 22 s"), false},
		{net("flush", "ip/nat/KUBE-SERVICES"), fails(symptom.KubeProxyCrash, "cp1"), true},
		{net("drop", "ip/filter/FLANNEL-FWD"), of(fails(symptom.Unexplained, "cp1"), "forwarding"), true},
		{object("daemonset/kube-system/kube-proxy"), fails(symptom.KubeProxyCrash, "w2"), true},
		{object("daemonset/kube-flannel/kube-flannel-ds"), fails(symptom.FlannelSubnetEnvMissing, "w1"), true},
		{object("daemonset/kube-flannel/kube-flannel-ds"), fails(symptom.KubeProxyCrash, "w1"), false},
		{object("clusterrole//system:node"), fails(symptom.KubeletNotRunning, "w1"), true},
		{object("clusterrolebinding//system:controller:job-controller"), fails(symptom.ControllerManagerFailing, "cp1"), true},
		{object("role/kube-public/kubeadm:bootstrap-signer-clusterinfo"), fails(symptom.BootstrapRBACForbidden, ""), true},
		{object("configmap/kube-system/coredns"), of(fails(symptom.Unexplained, "w1"), "dns"), true},
		{object("lease/kube-system/kube-scheduler"), of(fails(symptom.Unexplained, ""), "scheduling"), true},
		{object("daemonset/kube-system/kube-proxy"), of(fails(symptom.Unexplained, "w1", "kube-system/kube-proxy-x7k2 does not start"), "pods"), true},
		{object("daemonset/kube-system/kube-proxy"), of(fails(symptom.Unexplained, "w1", "kube-flannel/kube-flannel-ds-1 does not start"), "pods"), false},
		{object("daemonset/kube-system/kube-proxy"), of(rulesOut(fails(symptom.Unexplained, "w1"), "these work: kube-proxy"), "disk"), false},
		{object(webhook + "//fault-pods"), fails(symptom.AdmissionRejects, ""), true},
		{object("configmap/kube-public/cluster-info"), fails(symptom.JoinConfigMissing, ""), true},
		{object(webhook + "//fault-pods"), fails(symptom.Unexplained, "", `webhook "fault-pods" does not answer`), true},
	}
	for _, tt := range tests {
		if got := tt.damage.Names(tt.finding); got != tt.want {
			t.Errorf("%s on %q, %s %s on %q %v: %v, want %v", tt.damage, tt.damage.Node, tt.finding.Symptom, tt.finding.Detail, tt.finding.Node,
				tt.finding.Evidence, got, tt.want)
		}
	}
}

// A symptom that nobody gave components would never count as the name of damage.
func TestEverySymptomHasComponents(t *testing.T) {
	none := []symptom.ID{symptom.Healthy, symptom.FileChanged, symptom.Unexplained, symptom.FlagRemoved, symptom.APIRemoved, symptom.EvictionBlocked, symptom.UpgradeUnfinished}
	for _, s := range symptom.All() {
		points := pointsAt(symptom.Finding{Symptom: s.ID})
		if (len(points) > 0) == slices.Contains(none, s.ID) {
			t.Errorf("%s points at %q", s.ID, points)
		}
	}
	for c, ids := range symptomsOf {
		for _, id := range ids {
			if _, known := symptom.Lookup(id); !known {
				t.Errorf("%s has the symptom %s, which does not exist", c, id)
			}
		}
	}
}

// cluster has objects, which kubectl keeps in files of this computer.
type cluster struct {
	recorder
	object  string
	written []string
	denied  bool
}

func (c *cluster) Labctl(ctx context.Context, args ...string) (string, error) {
	_, _ = c.recorder.Labctl(ctx, args...)
	if c.denied {
		return "", errors.New("forbidden")
	}
	for _, a := range args {
		if file, found := strings.CutPrefix(a, "--filename="); found {
			data, err := os.ReadFile(file)
			c.written = append(c.written, string(data))
			return "", err
		}
	}
	return c.object, nil
}

func TestObjectsAreEditedAndUndone(t *testing.T) {
	c := &cluster{object: `{"kind": "ConfigMap", "metadata": {"name": "coredns", "uid": "1", "resourceVersion": "7"}, "data": {"b": "2", "a": "1"}, "status": {}}`}
	target := Target{Driver: c, ControlPlane: "cp1", Members: members(3, 2)}
	d := Damage{Kind: "object", How: "edit", What: "configmap/kube-system/coredns"}
	var recorded Damage
	if err := d.make(t.Context(), target, func(d Damage) error { recorded = d; return nil }); err != nil {
		t.Fatal(err)
	}
	var kept struct {
		Metadata map[string]string
		Data     map[string]string
	}
	if err := json.Unmarshal([]byte(recorded.Before), &kept); err != nil || len(kept.Metadata) != 1 || len(kept.Data) != 2 {
		t.Errorf("kept %s, %v", recorded.Before, err)
	}
	if last := c.ran[len(c.ran)-1]; !strings.Contains(last, `--patch={"data":{"a":"damaged"}} configmap coredns --namespace=kube-system`) {
		t.Errorf("ran %s", last)
	}
	if err := recorded.undo(t.Context(), target, true); err != nil || !slices.Equal(c.written, []string{recorded.Before}) {
		t.Errorf("wrote %q, %v", c.written, err)
	}
	c.denied = true
	if err := recorded.undo(t.Context(), target, true); err != nil || !strings.Contains(c.ran[len(c.ran)-1], "/etc/kubernetes/super-admin.conf") {
		t.Errorf("without rights: %v, ran %s", err, c.ran[len(c.ran)-1])
	}
	lease := Damage{Kind: "object", How: "delete", What: "lease/kube-system/kube-scheduler", Before: "{}"}
	n := len(c.ran)
	if err := lease.undo(t.Context(), target, true); err != nil || len(c.ran) != n {
		t.Errorf("a lease that its holder makes again: %v, ran %q", err, c.ran[n:])
	}
}

// A webhook is JSON that the API server takes.
func TestRejects(t *testing.T) {
	for name, want := range map[string]string{"fault-pods": "[pods]", "fault-nodes": "[nodes nodes/status]"} {
		var hook struct {
			Metadata struct{ Name string }
			Webhooks []struct {
				Name  string
				Rules []struct{ Resources []string }
			}
		}
		err := json.Unmarshal([]byte(rejects(name)), &hook)
		if err != nil || hook.Metadata.Name != name || fmt.Sprint(hook.Webhooks[0].Rules[0].Resources) != want || strings.Count(hook.Webhooks[0].Name, ".") < 2 {
			t.Errorf("%s: %+v, %v", name, hook, err)
		}
	}
}
