package scenarios

import "k8slab/lab/symptom"

var kubeletStopped = Fault{
	Name:    "kubelet-stopped",
	Story:   "kubelet was stopped on a member and never started again (enhanced-kubernetes-join)",
	Roles:   everyRole,
	Symptom: symptom.KubeletNotRunning,
	Inject:  on("systemctl", "stop", "kubelet"),
	Effect:  kubeletSilent,
	Recover: repair,
	Restore: startKubelet,
}

// startKubelet gets kubelet running again on a member where it does not. Elsewhere its own condition keeps it from starting.
var startKubelet = script(`
	systemctl unmask kubelet
	systemctl daemon-reload
	systemctl --quiet is-active kubelet || systemctl start kubelet`)
