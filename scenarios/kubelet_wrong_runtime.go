package scenarios

import "k8slab/lab/symptom"

var kubeletWrongRuntime = Fault{
	Name:    "kubelet-wrong-runtime",
	Story:   "the move from Docker to containerd was forgotten in kubelet's flags: they name dockershim's socket (kubeadm#2364)",
	Roles:   everyRole,
	Symptom: symptom.CRIEndpointWrong,
	Inject:  dockershimFlag.make,
	Effect:  kubeletSilent,
	Recover: repair,
	Restore: dockershimFlag.undo,
}

var dockershimFlag = edit{
	path: kubeletFlags,
	how:  `sed --in-place 's|="|="--container-runtime-endpoint=unix:///var/run/dockershim.sock |' "$1"`,
	then: restartKubelet,
}
