package scenarios

import "k8slab/lab/symptom"

var kubeletCertificateExpired = Fault{
	Name:    "kubelet-certificate-expired",
	Story:   "the machine was off for so long that kubelet's certificate ended, and kubelet does not start again (kubernetes#98150)",
	Roles:   workers,
	Symptom: symptom.CertificateExpired,
	Inject:  reissues(kubeletCertificate, kubeletCertificate.path, "ca", expired...),
	Effect:  kubeletSilent,
	Recover: rejoining,
	May:     []Change{Identity},
	Restore: kubeletCertificate.undo,
}

// The file has the key too.
var kubeletCertificate = edit{
	path: "/var/lib/kubelet/pki/kubelet-client-current.pem",
	how: `
		key=$(openssl pkey -in "$1")
		printf '%s\n%s\n' "$2" "$key" >"$1"`,
	then: restartKubelet,
}
