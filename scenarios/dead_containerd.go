package scenarios

import "k8slab/lab/symptom"

var deadContainerd = Fault{
	Name:    "dead-containerd",
	Story:   "containerd is not running when the worker joins (worker-join-hanging)",
	Roles:   everyRole,
	Symptom: symptom.RuntimeSocketMissing,
	Inject:  on("systemctl", "stop", "containerd"),
	Join:    &Join{Cause: symptom.RuntimeSocketMissing},
}
