package lab

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/join"
	"k8slab/lab/labtest"
	"k8slab/lab/machine"
	"k8slab/lab/repair"
	"k8slab/lab/symptom"
)

// podIP is the address of a pod.
func (w *world) podIP(at string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	ip, _ := w.objects[at]["status"].(object)["podIP"].(string)
	return ip
}

// flannelPods are flannel's on the node.
func (w *world) flannelPods(node string) (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for at, o := range w.objects {
		if name, in := strings.CutPrefix(at, "/api/v1/namespaces/kube-flannel/pods/"); in && o["spec"].(object)["nodeName"] == node {
			names = append(names, name)
		}
	}
	return names
}

const flannelConfig = "/api/v1/namespaces/kube-flannel/configmaps/flannel"

// networkRepairs are damages inside a cluster that has all its nodes, and what shows that they are repaired.
var networkRepairs = []struct {
	name, symptom, node, evidence string
	damage                        func(*world)
	repaired                      func(*world) error
}{
	{"a pod with an address of another network", string(symptom.CNIStaleConfig), "w1", "pod k8slab/probe-w1 has the address 10.88.0.5",
		func(w *world) { w.objects[probePods+"probe-w1"]["status"].(object)["podIP"] = "10.88.0.5" },
		func(w *world) error {
			if ip := w.podIP(probePods + "probe-w1"); !strings.HasPrefix(ip, "10.244.") {
				return fmt.Errorf("it has %s", ip)
			}
			return nil
		}},
	{"flannel's word to the plugin is gone", string(symptom.FlannelSubnetEnvMissing), "w1", "flannel runs and " + subnetFile + " is gone",
		func(w *world) { w.box("w1").noSubnet = true },
		func(w *world) error {
			if pods := w.flannelPods("w1"); !slices.Equal(pods, []string{"flannel-w1-2"}) || w.box("w1").noSubnet {
				return fmt.Errorf("flannel's pods are %q", pods)
			}
			return nil
		}},
	{"flannel's configuration was edited, and it ended", string(symptom.NetworkPluginPodsFailing), "", "ConfigMap kube-flannel/flannel differs at data.net-conf.json",
		func(w *world) {
			w.objects[flannelConfig]["data"].(object)["net-conf.json"] = "{"
			pod := w.objects["/api/v1/namespaces/kube-flannel/pods/flannel-w1"]
			pod["status"].(object)["conditions"] = []object{{"type": "Ready", "status": "False"}}
			pod["status"].(object)["containerStatuses"] = []object{{"name": "flannel", "restartCount": 3, "state": object{"waiting": object{"reason": "CrashLoopBackOff"}}}}
		},
		func(w *world) error {
			if text := w.objects[flannelConfig]["data"].(object)["net-conf.json"]; text == "{" || !slices.Equal(w.flannelPods("w1"), []string{"flannel-w1-2"}) {
				return fmt.Errorf("flannel's pods are %q with %v", w.flannelPods("w1"), text)
			}
			return nil
		}},
	{"flannel has the subnet of an earlier Node", string(symptom.CNIStaleConfig), "w2", "flannel uses 10.244.99.0/24",
		func(w *world) {
			w.box("w2").files[subnetFile] = "FLANNEL_SUBNET=10.244.99.1/24\n"
			w.objects[probePods+"probe-w2"]["status"].(object)["podIP"] = "10.244.99.7"
		},
		func(w *world) error {
			if ip := w.podIP(probePods + "probe-w2"); strings.HasPrefix(ip, "10.244.99.") || len(w.flannelPods("w2")) != 1 {
				return fmt.Errorf("its pod has %s", ip)
			}
			return nil
		}},
	{"a scheduler with a manifest of somebody's", string(symptom.ControlPlaneCrashloop), "cp2", "kube-scheduler's manifest is not what kubeadm makes",
		func(w *world) {
			w.box("cp2").crashing = "kube-scheduler"
			w.box("cp2").files[manifestDir+"kube-scheduler.yaml"] = somebodys
		},
		func(w *world) error {
			files := w.box("cp2").files
			if files[manifestDir+"kube-scheduler.yaml"] != manifestOf("kube-scheduler") || files["/etc/kubernetes/kube-scheduler.yaml.k8slab-saved"] != somebodys {
				return fmt.Errorf("files %v", files)
			}
			return nil
		}},
	{"something that labnode repairs", string(symptom.SwapEnabled), "w1", "swap",
		func(w *world) { w.box("w1").swap = true },
		func(w *world) error {
			if w.box("w1").swap {
				return fmt.Errorf("swap is on")
			}
			return nil
		}},
}

// A dry run says what a repair does and leaves it; the repair does it, says so, and ends when the lab is healthy.
func TestRepairsOfNodesAndTheirNetwork(t *testing.T) {
	for _, tt := range networkRepairs {
		inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
			w.up()
			w.clean()
			w.change(func() { tt.damage(w) })
			foreseen, err := w.lab.Repair(t.Context(), true, repair.Restart)
			if err != nil || len(foreseen) == 0 || foreseen[0].Would == "" || foreseen[0].Symptom != tt.symptom || tt.repaired(w) == nil {
				t.Errorf("%s: a dry run: %+v, %v", tt.name, foreseen, err)
			}
			if len(w.lab.Changes()) > 0 {
				t.Errorf("%s: a dry run changed %q", tt.name, w.lab.Changes())
			}
			found, err := w.lab.Repair(t.Context(), false, repair.Restart)
			if err != nil || len(found) != 1 || found[0].Did == "" || found[0].Symptom != tt.symptom || found[0].Node != tt.node || !strings.Contains(found[0].Evidence, tt.evidence) {
				t.Errorf("%s: %+v, %v", tt.name, found, err)
			}
			if err := tt.repaired(w); err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			w.wantHealthy()
			if again, err := w.lab.Repair(t.Context(), false, repair.Restart); err != nil || len(again) > 0 {
				t.Errorf("%s: a second repair: %+v, %v", tt.name, again, err)
			}
		})
	}
}

// A static pod whose manifest is kubeadm's ends for another reason, which a repair leaves.
func TestRepairLeavesKubeadmsManifest(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.clean()
		w.change(func() {
			w.box("cp2").crashing = "kube-controller-manager"
		})
		found, err := w.lab.Repair(t.Context(), false, repair.Restart)
		if err != nil || slices.ContainsFunc(found, func(r repair.Repaired) bool { return r.Did != "" }) {
			t.Errorf("%+v, %v", found, err)
		}
		if w.count("cp2: cp -f") > 0 {
			t.Errorf("wrote a manifest: %q", w.lab.Changes())
		}
	})
}

// What needs a person is told with what to do, and is not waited for in vain.
func TestRepairLeavesWhatNeedsAPerson(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.clean()
		w.change(func() { w.box("w1").state = machine.Off })
		found, err := w.lab.Repair(t.Context(), false, repair.Restart)
		if f := find(found, "w1"); err != nil || f.Symptom != string(symptom.NodeUnreachable) || f.Left != "labctl up starts its machine" {
			t.Errorf("%+v, %v", found, err)
		}
		if len(w.rungsTaken("w1")) > 0 {
			t.Errorf("a machine that somebody turned off was touched: %q", w.lab.Changes())
		}
		w.change(func() { w.box("w1").state = machine.Running })
		w.wantHealthy()
	})
}

// A node that is in no cluster and whose join fails is left, with the cause.
func TestRepairWithAJoinThatFails(t *testing.T) {
	inWorld(t, labtest.Three, func(c *config.Cluster) { c.Tuning.WorkerJoinRetryAttempts = 1 }, func(t *testing.T, w *world) {
		w.up()
		if err := w.lab.Reset(t.Context(), "w1"); err != nil {
			t.Fatal(err)
		}
		w.box("w1").outage = &join.Outcome{Symptom: symptom.KubeletConfigMissing, Evidence: "no kubelet", Phase: "kubelet-start", Hint: "look at kubelet"}
		w.clean()
		found, err := w.lab.Repair(t.Context(), false, repair.Restart)
		if err != nil || len(found) == 0 || !strings.Contains(found[0].Evidence, "no kubelet") || !strings.Contains(found[0].Left, "labctl join w1") {
			t.Errorf("%+v, %v", found, err)
		}
	})
}

// With a quorum lost a repair removes nothing and says so.
func TestRepairWithoutAQuorum(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.clean()
		w.change(func() { w.box("cp2").state, w.box("cp3").state = machine.Off, machine.Off })
		if _, err := w.lab.Repair(t.Context(), false, repair.Restart); err == nil {
			t.Error("no error")
		}
		if len(w.members) != 3 || w.count("kube ")+w.count("etcd ") > 0 {
			t.Errorf("members %+v, changed %q", w.members, w.lab.Changes())
		}
	})
}
