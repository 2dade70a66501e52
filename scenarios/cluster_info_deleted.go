package scenarios

import "k8slab/lab/symptom"

var clusterInfoDeleted = Fault{
	Name:    "cluster-info-deleted",
	Story:   "the public ConfigMap cluster-info was deleted, and a joining kubeadm waits for it (kubespray#4117)",
	Roles:   workers,
	Alone:   "kubeadm waits for it, and fails with a time-out",
	Outside: true,
	Inject:  tries(breaks(clusterInfo.make)),
	Effect:  recorded(symptom.JoinConfigMissing),
	Symptom: symptom.JoinConfigMissing,
	Of:      hereOrCluster,
	Recover: nodeVerb("join"),
	May:     []Change{Others},
	Restore: clusterInfo.undo,
}

var clusterInfo = object{namespace: "kube-public", name: "configmap/cluster-info"}
