package scenarios

import "k8slab/lab/symptom"

var hostToolMissing = Fault{
	Name:    "host-tool-missing",
	Story:   "a minimal image lacks a program that kubeadm's preflight wants (enhanced-kubernetes-join)",
	Roles:   everyRole,
	Alone:   "kubeadm refuses",
	Outside: true,
	Inject:  on("mv", losetup, losetup+".fault"),
	Effect:  refuses(symptom.HostToolsMissing),
	Symptom: symptom.HostToolsMissing,
	Recover: nodeVerb("join"),
	ByHand:  "a package has to be installed, and nodes have no uplink to fetch it",
	Restore: script(`! test -e ` + losetup + `.fault || mv ` + losetup + `.fault ` + losetup),
}

const losetup = "/usr/sbin/losetup"
