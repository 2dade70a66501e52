package scenarios

import "k8slab/lab/symptom"

var missingCNI = Fault{
	Name:    "missing-cni",
	Story:   "a worker without any CNI configuration never becomes Ready (worker-cni-join-fix)",
	Roles:   everyRole,
	Alone:   "kubeadm joins a node that is not Ready, and it stays so",
	Symptom: symptom.CNINotInitialized,
	Inject:  script(keepCNI + `rm -f /etc/cni/net.d/*`),
	Effect:  networkDown,
	Recover: repair,
	Restore: restoreCNI,
	Join:    &Join{Cause: symptom.CNINotInitialized},
}

// keepCNI keeps a copy of the CNI configuration.
const keepCNI = `
	kept=` + keptFiles + `/cni
	umask 077
	mkdir -p $kept
	cp --archive --no-clobber /etc/cni/net.d/. $kept
`

// restoreCNI copies the CNI configuration back if there is none. containerd notices a copy, but not a move.
var restoreCNI = script(`
	kept=` + keptFiles + `/cni
	if test -d $kept; then
		mkdir -p /etc/cni/net.d
		test -n "$(ls /etc/cni/net.d)" || cp $kept/* /etc/cni/net.d/
		rm -rf $kept
	fi` + tidy)
