package scenarios

import (
	"context"
	"regexp"
	"strings"

	"k8slab/lab/symptom"
)

var certificateKeyWrong = Fault{
	Name:    "certificate-key-wrong",
	Story:   "a control plane joins with the key of an earlier upload: a later one has encrypted the certificates anew (kubeadm#1510)",
	Roles:   controlPlane,
	Alone:   "kubeadm refuses",
	Outside: true,
	Inject: tries(func(_ context.Context, _ Target, command string) (string, error) {
		return keyFlag.ReplaceAllString(command, "--certificate-key "+strings.Repeat("ab", 32)), nil
	}),
	Effect:  recorded(symptom.CertificateKeyInvalid),
	Symptom: symptom.CertificateKeyInvalid,
	Recover: nodeVerb("join"),
}

var keyFlag = regexp.MustCompile(`--certificate-key \S+`)
