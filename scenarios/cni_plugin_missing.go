package scenarios

import "k8slab/lab/symptom"

var cniPluginMissing = Fault{
	Name:    "cni-plugin-missing",
	Story:   "the CNI plugins were deleted with the directory that they are in (worker-cni-join-fix)",
	Roles:   everyRole,
	Symptom: symptom.CNIPluginBinaryMissing,
	Inject:  on("rm", "--force", "/opt/cni/bin/bridge", "/opt/cni/bin/loopback", "/opt/cni/bin/flannel"),
	Join:    &Join{Cause: symptom.CNIPluginBinaryMissing},
}
