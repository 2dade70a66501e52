package scenarios

import "k8slab/lab/symptom"

var containerdMasked = Fault{
	Name:    "containerd-masked",
	Story:   "somebody masked containerd to keep it quiet, and forgot it (enhanced-kubernetes-join)",
	Roles:   everyRole,
	Symptom: symptom.RuntimeSocketMissing,
	Inject:  on("systemctl", "mask", "--now", "containerd"),
	Effect:  runtimeSilent,
	Recover: repair,
	Restore: startContainerd,
	Join:    &Join{Cause: symptom.RuntimeSocketMissing},
}
