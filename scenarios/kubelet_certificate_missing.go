package scenarios

import "k8slab/lab/symptom"

var kubeletCertificateMissing = Fault{
	Name:    "kubelet-certificate-missing",
	Story:   "a clean-up deleted kubelet's certificate: it looks for the bootstrap kubeconfig, which no joined node has (kubernetes#98150)",
	Roles:   workers,
	Symptom: symptom.BootstrapKubeconfigMissing,
	Inject:  lostKubeletCertificate.make,
	Effect:  kubeletSilent,
	Recover: rejoining,
	May:     []Change{Identity},
	Restore: lostKubeletCertificate.undo,
}

var lostKubeletCertificate = edit{
	path: kubeletCertificate.path,
	how:  `rm "$(readlink --canonicalize "$1")"`,
	then: restartKubelet,
}
