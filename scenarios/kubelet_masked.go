package scenarios

import "k8slab/lab/symptom"

var kubeletMasked = Fault{
	Name:    "kubelet-masked",
	Story:   "kubelet was masked so that it would not start before the join (enhanced-kubernetes-join)",
	Roles:   everyRole,
	Symptom: symptom.KubeletNotRunning,
	Inject:  on("systemctl", "mask", "--now", "kubelet"),
	Effect:  kubeletSilent,
	Recover: repair,
	Restore: startKubelet,
	Join:    &Join{Cause: symptom.KubeletNotRunning},
}
