package scenarios

import "k8slab/lab/symptom"

var portInUse = Fault{
	Name:    "port-in-use",
	Story:   "another program listens on kubelet's port (enhanced-kubernetes-join)",
	Roles:   everyRole,
	Alone:   "kubeadm refuses after 0.4 s",
	Outside: true,
	Inject:  on("systemd-run", "--quiet", "--collect", "--unit", portHolder, labnode, "validate", "--serve", "127.0.0.1:10250"),
	Effect:  refuses(symptom.PortInUse),
	Symptom: symptom.PortInUse,
	Recover: nodeVerb("join"),
	Remedy:  symptom.StopUnit,
	Restore: stopUnit(portHolder),
}

const portHolder = "fault-port-holder"
