package scenarios

import "k8slab/lab/symptom"

// The connection that kubelet has goes on working, so the Node stays Ready: whoever connects anew, such as crictl or kubelet after a
// restart, finds nobody.
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
