package scenarios

import "k8slab/lab/symptom"

var ipForwardOff = Fault{
	Name:    "ip-forward-off",
	Story:   "the machine does not forward packets, which kubeadm's preflight refuses (kubeadm#1062)",
	Roles:   everyRole,
	Symptom: symptom.KernelPrereqMissing,
	Inject:  on("sysctl", "--write", "net.ipv4.ip_forward=0"),
	Join:    &Join{Cause: symptom.KernelPrereqMissing},
}
