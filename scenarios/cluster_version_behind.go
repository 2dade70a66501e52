package scenarios

import "k8slab/lab/symptom"

var clusterVersionBehind = Fault{
	Name:    "cluster-version-behind",
	Story:   "the programs were upgraded by hand, and kubeadm's configuration of the cluster still has the old version (kubernetes#94065)",
	Roles:   workers,
	Alone:   "kubeadm refuses",
	Outside: true,
	Inject:  oldVersion.make,
	Effect:  refuses(symptom.VersionSkew),
	Symptom: symptom.VersionSkew,
	Of:      hereOrCluster,
	Recover: nodeVerb("join"),
	ByHand:  "somebody edits kubeadm's configuration of the cluster",
	May:     []Change{Others},
	Restore: oldVersion.undo,
}

var oldVersion = object{namespace: "kube-system", name: "configmap/kubeadm-config", how: `s/^\( *kubernetesVersion: \).*/\1v1.29.0/`}
