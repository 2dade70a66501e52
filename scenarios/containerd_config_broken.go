package scenarios

import "k8slab/lab/symptom"

var containerdConfigBroken = Fault{
	Name:    "containerd-config-broken",
	Story:   "a slip in containerd's configuration: containerd cannot read it, and does not start again (containerd#4581)",
	Lab:     theImage,
	Roles:   everyRole,
	Symptom: symptom.FileChanged,
	Inject:  containerdSlip.make,
	Effect:  runtimeSilent,
	Recover: repair,
	Restore: containerdSlip.undo,
}

var containerdSlip = edit{path: containerdConfig, how: `echo '[plugins' >>"$1"`, then: restartContainerd}

const containerdConfig = "/etc/containerd/config.toml"
