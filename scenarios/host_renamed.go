package scenarios

import "k8slab/lab/symptom"

var hostRenamed = Fault{
	Name:    "host-renamed",
	Story:   "the machine was renamed after it had joined, its kubelet too: kubelet may not speak for the new name, and its Node is left behind (kubernetes#47695)",
	Roles:   workers, // on a control plane the static pods would be other pods, and etcd would start anew
	Symptom: symptom.NodeNameMismatch,
	Inject:  after(unnamed.make, on("hostname", "renamed.fault.invalid"), on("systemctl", "restart", "kubelet")),
	Effect:  notReady,
	Recover: repair,
	May:     []Change{Boot}, // a machine that starts anew has its own name again
	Restore: each(on("hostname", "--file", "/etc/hostname"), unnamed.undo),
}

// unnamed takes the name from kubelet that kubeadm has given it: older versions did not. The comment is for nodes that have none.
var unnamed = edit{
	path: kubeletFlags,
	how:  `sed --in-place 's/--hostname-override=[^ "]* *//; $a# renamed' "$1"`,
	then: restartKubelet,
}
