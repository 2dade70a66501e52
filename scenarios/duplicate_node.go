package scenarios

import "k8slab/lab/symptom"

var duplicateNode = Fault{
	Name:    "duplicate-node",
	Story:   "a worker was reset while its Node is still Ready, and kubeadm refuses the name (worker-join-hanging)",
	Roles:   workers,
	Inject:  on(labnode, "reset"),
	Effect:  refuses(symptom.NodeNameExists),
	Alone:   "kubeadm refuses after 0.4 s",
	Symptom: symptom.NodeNameExists,
	Once:    true,
	Recover: nodeVerb("join"),
	May:     []Change{Identity},
	Join:    &Join{Member: true, Cause: symptom.NodeNameExists},
}
