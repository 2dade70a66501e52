package scenarios

import "k8slab/lab/symptom"

var cniDirectoryRemoved = Fault{
	Name:    "cni-directory-removed",
	Story:   "rm -rf of the CNI directory, as many guides advise, ends containerd 2.x, and 1.7 never watches it again (containerd#11209)",
	Roles:   everyRole,
	Symptom: symptom.CNINotInitialized,
	Inject:  script(keepCNI + `rm -rf /etc/cni/net.d`),
	Effect:  networkDown,
	Recover: repair,
	Restore: restoreCNI,
	Join:    &Join{},
}
