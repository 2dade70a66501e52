package scenarios

import "k8slab/lab/symptom"

var deadContainerd = Fault{
	Name:    "dead-containerd",
	Story:   "containerd is not running when the worker joins, or ends on a member (worker-join-hanging)",
	Roles:   everyRole,
	Alone:   "kubeadm refuses after 0.4 s",
	Symptom: symptom.RuntimeSocketMissing,
	Inject:  on("systemctl", "stop", "containerd"),
	Effect:  runtimeSilent,
	Recover: repair,
	Restore: startContainerd,
	Join:    &Join{Cause: symptom.RuntimeSocketMissing},
}

// startContainerd starts containerd if it does not run.
var startContainerd = script(`
	systemctl unmask containerd
	test -S /run/containerd/containerd.sock || systemctl restart containerd`)
