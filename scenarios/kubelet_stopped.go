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

// startKubelet starts kubelet if it does not run. On a machine that has not joined, the condition of the systemd unit prevents the start.
var startKubelet = script(`
	systemctl unmask kubelet
	systemctl daemon-reload
	systemctl --quiet is-active kubelet || systemctl start kubelet`)
