package scenarios

import "k8slab/lab/symptom"

var missingCNI = Fault{
	Name:    "missing-cni",
	Story:   "a worker without any CNI configuration never becomes Ready (worker-cni-join-fix)",
	Roles:   everyRole,
	Alone:   "kubeadm joins a node that is not Ready, and it stays so",
	Symptom: symptom.CNINotInitialized,
	Inject:  script(`rm -f /etc/cni/net.d/*`),
	Effect:  networkDown,
	Recover: repair,
	Restore: restoreCNI,
	Join:    &Join{Cause: symptom.CNINotInitialized},
}

// restoreCNI copies the image's CNI configuration back if there is none. containerd notices a copy, but not a move.
var restoreCNI = script(`
	mkdir -p /etc/cni/net.d
	test -n "$(ls /etc/cni/net.d)" || cp /usr/share/k8slab/cni/* /etc/cni/net.d/`)
