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
	Inject: func(ctx context.Context, t Target) error {
		request, err := t.Run(ctx, t.Node, "openssl", "req", "-new", "-key", pki+"apiserver.key", "-subj", "/CN=kube-apiserver",
			"-addext", "extendedKeyUsage=serverAuth", "-addext", "subjectAltName=DNS:kubernetes,DNS:kubernetes.default.svc,IP:192.0.2.13")
		if err != nil {
			return err
		}
		issued, err := t.signed(ctx, "ca", request, "-days", "365")
		if err != nil {
			return err
		}
		return apiServerCertificate.on(ctx, t, t.Node, issued)
	},
	Effect:  served("ca.crt", "6443", "/livez", "", "subject name matches"),
	Recover: repair,
	Restore: apiServerCertificate.undo,
}
