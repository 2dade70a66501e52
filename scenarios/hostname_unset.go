package scenarios

import "k8slab/lab/symptom"

var hostnameUnset = Fault{
	Name:    "hostname-unset",
	Story:   "the machine still has the name of its image, localhost, and would join under it (enhanced-kubernetes-join)",
	Roles:   everyRole,
	Alone:   "kubeadm joins it as localhost",
	Outside: true,
	Inject:  on("hostname", noName),
	Effect:  refuses(symptom.HostnameInvalid),
	Symptom: symptom.HostnameInvalid,
	Recover: [][]string{{"join", Node}, {"repair"}}, // a join gives the Node its name, and leaves the machine's
	Restore: ownName,
}

// noName is the name of a machine that was given none.
const noName = "localhost"

var ownName = on("hostname", "--file", "/etc/hostname")
