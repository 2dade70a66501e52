package scenarios

import "k8slab/lab/symptom"

var cniConfigTruncated = Fault{
	Name:    "cni-config-truncated",
	Story:   "a power failure cut the CNI configuration short: containerd cannot read it, and has no network for pods (istio#44167)",
	Roles:   everyRole,
	Symptom: symptom.CNINotInitialized,
	Inject:  cutConfig.make,
	Effect:  networkDown,
	Recover: repair,
	Restore: cutConfig.undo,
}

var cutConfig = edit{path: "/etc/cni/net.d/10-flannel.conflist", how: `truncate --size 60 "$1"`}
