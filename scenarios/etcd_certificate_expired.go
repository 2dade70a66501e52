package scenarios

import "k8slab/lab/symptom"

var etcdCertificateExpired = Fault{
	Name:    "etcd-certificate-expired",
	Story:   "the certificate that etcd shows has ended: what connects anew to this member is refused (kubeadm#1651)",
	Roles:   controlPlane,
	Symptom: symptom.CertificateExpired,
	Applies: threeControlPlanes,
	Inject:  reissues(etcdCertificate, pki+"etcd/server.key", "etcd/ca", expired...),
	Effect:  served("etcd/ca.crt", "2379", "/health", "etcd/healthcheck-client", "certificate has expired"),
	Recover: repair,
	Restore: etcdCertificate.undo,
}

// etcd reads the file again for each connection.
var etcdCertificate = edit{path: pki + "etcd/server.crt", how: writeValue}
