package scenarios

import "k8slab/lab/symptom"

var ipForwardOff = Fault{
	Name:    "ip-forward-off",
	Story:   "the machine does not forward packets: kubeadm's preflight refuses it, and a member's pods reach no other node (kubeadm#1062)",
	Lab:     theProbe,
	Roles:   everyRole,
	Symptom: symptom.KernelPrereqMissing,
	Applies: seenFromOutside,
	Inject:  on("sysctl", "--write", "net.ipv4.ip_forward=0"),
	Effect:  probeUnreachable,
	Recover: repair,
	Restore: on("sysctl", "--write", "net.ipv4.ip_forward=1"),
	Join:    &Join{Cause: symptom.KernelPrereqMissing},
}
