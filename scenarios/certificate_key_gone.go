package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var certificateKeyGone = Fault{
	Name:    "certificate-key-gone",
	Story:   "a control plane joins with a command of this morning: the uploaded certificates are gone after two hours (control-plane-join-failures)",
	Roles:   controlPlane,
	Outside: true,
	Inject: tries(func(ctx context.Context, t Target, command string) (string, error) {
		_, err := t.kubectl(ctx, "delete", "secret", "--namespace", "kube-system", "kubeadm-certs")
		return command, err
	}),
	Effect:  recorded(symptom.CertificateKeyExpired),
	Alone:   "kubeadm refuses after 0.6 s",
	Symptom: symptom.CertificateKeyExpired,
	Recover: nodeVerb("join"),
}
