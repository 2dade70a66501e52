package scenarios

import "k8slab/lab/symptom"

// kubelet's open connection still works, so the Node stays Ready. New connections fail, such as those of crictl, or of kubelet after a restart.
var containerdSocketRemoved = Fault{
	Name:    "containerd-socket-removed",
	Story:   "a clean-up script deleted containerd's socket under a containerd that runs (enhanced-kubernetes-join)",
	Roles:   everyRole,
	Symptom: symptom.RuntimeSocketMissing,
	Inject:  on("rm", "--force", "/run/containerd/containerd.sock"),
	Effect:  runtimeSilent,
	Recover: repair,
	Restore: startContainerd,
	Join:    &Join{Cause: symptom.RuntimeSocketMissing},
}
