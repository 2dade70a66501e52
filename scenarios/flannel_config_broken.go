package scenarios

import "k8slab/lab/symptom"

var flannelConfigBroken = Fault{
	Name:    "flannel-config-broken",
	Story:   "flannel's configuration was edited and is no longer JSON: flannel ends on every node on which it starts anew (flannel#1862)",
	Lab:     theFlannel,
	Roles:   workers,
	Symptom: symptom.NetworkPluginPodsFailing,
	Inject:  after(flannelConfig.make, renewPods("kube-flannel", flannelPods)),
	Effect:  podFails("kube-flannel", flannelPods),
	Recover: repair,
	May:     []Change{Others},
	Restore: flannelConfig.undo,
}

var flannelConfig = object{namespace: "kube-flannel", name: "configmap/flannel", how: `s/"vxlan"/vxlan/`}

const flannelPods = "app=flannel"
