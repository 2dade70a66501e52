package scenarios

import "k8slab/lab/symptom"

var missingCNI = Fault{
	Name:    "missing-cni",
	Story:   "a worker without any CNI configuration never becomes Ready (worker-cni-join-fix)",
	Roles:   everyRole,
	Symptom: symptom.CNINotInitialized,
	Inject:  script(`rm -f /etc/cni/net.d/*`),
	Join:    &Join{Cause: symptom.CNINotInitialized},
}
