package scenarios

import "k8slab/lab/symptom"

var approvalRightDeleted = Fault{
	Name:    "approval-right-deleted",
	Story:   "the binding that has a joining kubelet's certificate approved was deleted in a clean-up of RBAC: the next join would hang (kubernetes#73356)",
	Roles:   workers,
	Symptom: symptom.BootstrapRBACForbidden,
	Of:      theCluster,
	Inject:  approvalBinding.make,
	Effect:  gone("clusterrolebinding", "kubeadm:node-autoapprove-bootstrap"),
	Recover: repair,
	May:     []Change{Others},
	Restore: approvalBinding.undo,
}

var approvalBinding = object{name: "clusterrolebinding/kubeadm:node-autoapprove-bootstrap"}
