package diagnose

import (
	"testing"

	"k8slab/lab/diagnose/fact"
	joining "k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

// TestRepairable compares what a finding says of `labctl repair` with what that does (lab/repair*.go). The circles of the faults compare it
// on real nodes.
func TestRepairable(t *testing.T) {
	flannelRuns := func(f *fact.Facts) {
		f.API.Pods = append(f.API.Pods, kube.Pod{Namespace: "kube-flannel", Name: "flannel-abcde", Node: "w1", IP: "192.0.2.21", Phase: "Running", Ready: true})
	}
	noDaemonSet := func(f *fact.Facts) {
		f.API.DaemonSets["kube-flannel/flannel"] = fact.DaemonSet{Missing: true, Error: "404"}
	}
	crashes := func(node string) func(*fact.Facts) {
		return func(f *fact.Facts) {
			fail(f.Machine(node), joining.Check{ID: "api-server", Result: joining.Blocked, Symptom: symptom.ControlPlaneCrashloop, Evidence: "it ends again and again"})
		}
	}
	tests := []struct {
		name  string
		facts []func(*fact.Facts)
		id    symptom.ID
		want  bool
	}{
		{"flannel's DaemonSet was deleted: applied again", []func(*fact.Facts){noDaemonSet}, symptom.NetworkPluginPodsFailing, true},
		{"a manifest was deleted: made again by kubeadm", []func(*fact.Facts){func(f *fact.Facts) {
			f.Machine("cp2").Inside.Manifests = []string{"etcd.yaml", "kube-controller-manager.yaml", "kube-scheduler.yaml"}
		}}, symptom.APIServerUnreachable, true},
		{"kube-proxy's DaemonSet was deleted: kubeadm's, applied again", []func(*fact.Facts){func(f *fact.Facts) {
			f.API.DaemonSets["kube-system/kube-proxy"] = fact.DaemonSet{Missing: true, Error: "404"}
		}}, symptom.KubeProxyCrash, true},
		{"flannel's file is gone, and flannel runs: restarted", []func(*fact.Facts){flannelRuns, func(f *fact.Facts) { f.Machine("w1").Inside.SubnetEnv = nil }},
			symptom.FlannelSubnetEnvMissing, true},
		{"flannel's file is gone with its DaemonSet: applied again", []func(*fact.Facts){noDaemonSet, func(f *fact.Facts) { f.Machine("w1").Inside.SubnetEnv = nil }},
			symptom.FlannelSubnetEnvMissing, true},
		{"flannel's file is gone, and flannel fails: needs a person", []func(*fact.Facts){func(f *fact.Facts) { f.Machine("w1").Inside.SubnetEnv = nil }},
			symptom.FlannelSubnetEnvMissing, false},
		{"flannel is about a deleted Node: restarted", []func(*fact.Facts){flannelRuns, func(f *fact.Facts) { f.API.Nodes[3].PodCIDR = "10.244.99.0/24" }},
			symptom.CNIStaleConfig, true},
		{"a static pod crashes where another API server answers: its manifest is compared", []func(*fact.Facts){crashes("cp2")}, symptom.ControlPlaneCrashloop, true},
		{"the API server that is asked crashes", []func(*fact.Facts){crashes("cp1")}, symptom.ControlPlaneCrashloop, false},
		{"a Node is not Ready and nothing says why", []func(*fact.Facts){func(f *fact.Facts) {
			f.API.Nodes[3].Ready, f.API.Nodes[3].ReadyStatus, f.API.Nodes[3].Reason = false, "Unknown", "NodeStatusUnknown"
		}}, symptom.KubeletNotRunning, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := healthyFacts(1)
			for _, b := range tt.facts {
				b(&f)
			}
			for _, found := range Judge(f) {
				if found.Symptom == tt.id {
					if found.Repairable != tt.want {
						t.Errorf("repairable is %v: %+v", found.Repairable, found)
					}
					return
				}
			}
			t.Errorf("%s is not found: %+v", tt.id, Judge(f))
		})
	}
}
