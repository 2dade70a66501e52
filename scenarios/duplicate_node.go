package scenarios

import "k8slab/lab/symptom"

var duplicateNode = Fault{
	Name:    "duplicate-node",
	Story:   "a worker was reset while its Node is still Ready, and kubeadm refuses the name (worker-join-hanging)",
	Roles:   workers,
	Symptom: symptom.NodeNameExists,
	Inject:  on("labnode", "reset"),
	Join:    &Join{Member: true, Cause: symptom.NodeNameExists},
}
