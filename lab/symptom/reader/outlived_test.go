package reader

import (
	"slices"
	"strings"
	"testing"

	"k8slab/lab/symptom"
)

// What a program complains of as long as it lasts is past when the program went on without a complaint.
func TestOutlived(t *testing.T) {
	const (
		sandbox = `Nov 26 17:19:27 w2 containerd[117]: time="2026-11-26T17:19:27Z" level=error msg="RunPodSandbox for name:\"web\" failed, error" error="rpc error: code = Unknown desc = failed to setup network for sandbox \"9c\": plugin type=\"flannel\" failed (add): netplugin failed with no error message"` + "\n"
		driver  = `Nov 26 17:19:27 w2 containerd[117]: time="2026-11-26T17:19:27Z" level=error msg="RunPodSandbox for name:\"web\" failed, error" error="runc create failed: expected cgroupsPath to be of format \"slice:prefix:name\" for systemd cgroups, got \"/kubepods/9c\" instead"` + "\n"
		slow    = `2026-11-26T17:11:01.9Z stderr F {"level":"warn","ts":"2026-11-26T17:11:01.0Z","caller":"etcdserver/v3_server.go:923","msg":"timed out waiting for read index response (local node might have slow network)","timeout":"11s"}` + "\n"
		events  = "NAMESPACE     LAST SEEN   TYPE      REASON                   OBJECT             MESSAGE\n"
		event   = `   Warning   FailedCreatePodSandBox   pod/kube-proxy-x   Failed to create pod sandbox: rpc error: code = Unknown desc = failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: expected cgroupsPath to be of format "slice:prefix:name" for systemd cgroups, got "/kubepods/burst" instead` + "\n"
	)
	later := func(clock string) string {
		return "Nov 26 " + clock + ` w2 containerd[117]: time="2026-11-26T17:20:00Z" level=info msg="StopPodSandbox for \"9c\" returns successfully"` + "\n"
	}
	etcd := func(clock string) string {
		return "2026-11-26T" + clock + `.9Z stderr F {"level":"info","ts":"2026-11-26T17:15:01Z","caller":"mvcc/index.go:194","msg":"compact tree index","revision":7}` + "\n"
	}
	for _, tt := range []struct {
		name, text string
		want       []symptom.ID
	}{
		{"no network for a pod", sandbox + later("17:19:40"), []symptom.ID{symptom.NetworkPluginPodsFailing}},
		{"no network for a pod, half a minute ago", sandbox + later("17:20:00"), nil},
		{"another cgroup driver", driver + later("17:19:40"), []symptom.ID{symptom.CgroupDriverMismatch}},
		{"another cgroup driver, half a minute ago", driver + later("17:20:00"), nil},
		{"a slow etcd", strings.Repeat(slow, 3) + etcd("17:11:10"), []symptom.ID{symptom.EtcdSlow}},
		{"a slow etcd, minutes ago", strings.Repeat(slow, 3) + etcd("17:15:10"), nil},
		{"an event", events + "kube-system   38s      " + event, []symptom.ID{symptom.CgroupDriverMismatch}},
		{"an event of minutes", events + "kube-system   5m12s    " + event, []symptom.ID{symptom.CgroupDriverMismatch}},
		{"an event that did not come again", events + "kube-system   11m      " + event, nil},
		{"an event of hours ago", events + "3h2m      " + event, nil},
	} {
		if got := symptomsOf(unsuspected(judge(t, tt.text))); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// Which modules a container finds says nothing of the computer's kernel, which has them.
func TestModulesOfAContainer(t *testing.T) {
	const (
		inside = "Nov 26 17:04:36 cp1 systemd[1]: Detected virtualization lxc-libvirt.\n"
		crash  = "Nov 26 17:04:38 cp1 kube-proxy[9]: E1126 17:04:38.1 9 server.go:1] \"Failed to start\" err=\"iptables is not available on this host\"\n"
		module = "Nov 26 17:04:37 cp1 systemd-modules-load[77]: Failed to find module 'br_netfilter'\n"
	)
	kernel := func(text string) bool {
		return slices.Contains(symptomsOf(judge(t, text+crash)), symptom.KernelPrereqMissing)
	}
	if !kernel(module) {
		t.Error("of a computer: not found")
	}
	for _, text := range []string{inside + module, module + inside} {
		if kernel(text) {
			t.Error("of a container: found")
		}
	}
}
