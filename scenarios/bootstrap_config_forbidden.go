package scenarios

import "k8slab/lab/symptom"

var bootstrapConfigForbidden = Fault{
	Name:    "bootstrap-config-forbidden",
	Story:   "the role by which a joining node reads kubeadm's configuration was deleted in a clean-up of RBAC (kubeadm#907)",
	Roles:   workers,
	Alone:   "kubeadm is forbidden to read its configuration, and fails",
	Outside: true,
	Inject:  tries(breaks(configBinding.make)),
	Effect:  recorded(symptom.BootstrapRBACForbidden),
	Symptom: symptom.BootstrapRBACForbidden,
	Of:      hereOrCluster,
	Recover: nodeVerb("join"),
	May:     []Change{Others},
	Restore: configBinding.undo,
}

var configBinding = object{namespace: "kube-system", name: "rolebinding/kubeadm:nodes-kubeadm-config"}
