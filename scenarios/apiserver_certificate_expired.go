package scenarios

import "k8slab/lab/symptom"

var apiServerCertificateExpired = Fault{
	Name:    "apiserver-certificate-expired",
	Story:   "a year went by without an upgrade, and the certificate that a control plane's API server shows has ended (kubeadm#1651)",
	Roles:   controlPlane,
	Symptom: symptom.CertificateExpired,
	Applies: anotherControlPlane,
	Inject:  reissues(apiServerCertificate, pki+"apiserver.key", "ca", expired...),
	Effect:  served("ca.crt", "6443", "/livez", "", "certificate has expired"),
	Recover: repair,
	Restore: apiServerCertificate.undo,
}

// The API server reads the file again by itself.
var apiServerCertificate = edit{path: pki + "apiserver.crt", how: writeValue}
