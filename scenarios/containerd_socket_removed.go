package scenarios

import "k8slab/lab/symptom"

var containerdSocketRemoved = Fault{
	Name:    "containerd-socket-removed",
	Story:   "a clean-up script deleted containerd's socket under a containerd that runs (enhanced-kubernetes-join)",
	Roles:   everyRole,
	Symptom: symptom.RuntimeSocketMissing,
	Inject:  on("rm", "--force", "/run/containerd/containerd.sock"),
	Join:    &Join{Cause: symptom.RuntimeSocketMissing},
}
