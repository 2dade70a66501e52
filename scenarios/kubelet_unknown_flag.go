package scenarios

import "k8slab/lab/symptom"

var kubeletUnknownFlag = Fault{
	Name:    "kubelet-unknown-flag",
	Story:   "an upgrade left kubelet a flag that its version no longer has, and kubelet does not start again (kubespray#8924)",
	Roles:   everyRole,
	Symptom: symptom.KubeletFlagRemoved,
	Inject:  removedFlag.make,
	Effect:  kubeletSilent,
	Recover: repair,
	Restore: removedFlag.undo,
}

var removedFlag = edit{
	path: kubeletFlags,
	how:  `sed --in-place 's/="/="--network-plugin=cni /' "$1"`,
	then: restartKubelet,
}
