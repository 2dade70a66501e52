package scenarios

import "k8slab/lab/symptom"

var hostRenamed = Fault{
	Name:    "host-renamed",
	Story:   "the machine was renamed after it had joined: kubelet may not speak for the new name, and its Node is left behind (kubernetes#47695)",
	Roles:   workers, // on a control plane the static pods would be other pods, and etcd would start anew
	Symptom: symptom.NodeNameMismatch,
	Inject: script(`
		hostname renamed.fault.invalid
		systemctl restart kubelet`),
	Effect:  notReady,
	Recover: repair,
	May:     []Change{Boot}, // a machine that starts anew has its own name again
	Restore: script(`
		name=$(cat /etc/hostname)
		if test "$(hostname)" != "$name"; then
			hostname "$name"
			systemctl restart kubelet
		fi`),
}
