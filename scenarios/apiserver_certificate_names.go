package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var apiServerCertificateNames = Fault{
	Name:    "apiserver-certificate-names",
	Story:   "the machine got another address, and the certificate of its API server names the old one (kubeadm#1447)",
	Roles:   controlPlane,
	Symptom: symptom.X509SANMismatch,
	Applies: anotherControlPlane,
	Inject: issues(apiServerCertificate, "ca", func(ctx context.Context, t Target) (string, error) {
		return t.Run(ctx, t.Node, "openssl", "req", "-new", "-key", pki+"apiserver.key", "-subj", "/CN=kube-apiserver",
			"-addext", "extendedKeyUsage=serverAuth", "-addext", "subjectAltName=DNS:kubernetes,DNS:kubernetes.default.svc,IP:192.0.2.13")
	}, "-days", "365"),
	Effect:  served("ca.crt", "6443", "/livez", "", "subject name matches"),
	Recover: repair,
	Restore: apiServerCertificate.undo,
}
