package scenarios

import "k8slab/lab/symptom"

var kubeadmMissing = Fault{
	Name:    "kubeadm-missing",
	Story:   "kubeadm is not installed on the machine (enhanced-kubernetes-join)",
	Roles:   everyRole,
	Symptom: symptom.KubeBinariesMissing,
	Stops:   true,
	Inject:  on("mv", "/usr/bin/kubeadm", "/usr/bin/kubeadm.away"),
	Restore: script(`! test -e /usr/bin/kubeadm.away || mv /usr/bin/kubeadm.away /usr/bin/kubeadm`),
	Join:    &Join{Cause: symptom.KubeBinariesMissing},
}
