package scenarios

import "k8slab/lab/symptom"

var memoryLimitTooLow = Fault{
	Name:    "memory-limit-too-low",
	Story:   "somebody gave the controller manager a memory limit that is too low: the kernel ends it again and again (kubeadm#1279)",
	Roles:   controlPlane,
	Symptom: symptom.OutOfMemory,
	Applies: anotherControlPlane,
	Inject:  lowLimit.make,
	Effect:  ends("kube-controller-manager", "137"), // the kernel's SIGKILL
	Recover: repair,
	Restore: lowLimit.undo,
}

// An idle controller manager needs 18 MiB. The limit is that of the container's own cgroup, so the kernel ends nothing else.
var lowLimit = edit{
	path: controllerManagerGone.path,
	how:  `sed --in-place 's/^\( *\)resources:$/&\n\1  limits: {memory: 14Mi}/' "$1"`,
}
