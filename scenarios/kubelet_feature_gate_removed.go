package scenarios

import "k8slab/lab/symptom"

var kubeletFeatureGateRemoved = Fault{
	Name:    "kubelet-feature-gate-removed",
	Story:   "kubelet's configuration sets a feature gate that an upgrade removed, and kubelet does not start again (talos#13480)",
	Roles:   everyRole,
	Symptom: symptom.KubeletFlagRemoved,
	Inject:  removedGate.make,
	Effect:  kubeletSilent,
	Recover: repair,
	Restore: removedGate.undo,
}

var removedGate = edit{
	path: "/var/lib/kubelet/config.yaml",
	how:  `echo 'featureGates: {DynamicKubeletConfig: true}' >>"$1"`,
	then: restartKubelet,
}
