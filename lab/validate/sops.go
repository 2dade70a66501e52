package validate

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// sopsMark begins every value that SOPS has encrypted, sopsKey is where it keeps what it needs to decrypt a document.
const (
	sopsMark = "ENC[AES256_GCM,"
	sopsKey  = "sops"
)

// decrypted checks the Secrets that Flux's Kustomizations with decryption have applied. It does not show their values.
func (c *Cluster) decrypted(ctx context.Context) (Finding, error) {
	all, served, err := c.listFlux(ctx, kustomizations)
	if err != nil || !served {
		return absent(noFlux), err
	}
	var t tally
	decrypting, secrets := 0, 0
	for _, k := range all {
		if k.Spec.Decryption == nil {
			continue
		}
		decrypting++
		if t.unsettled(k) {
			continue
		}
		for _, name := range k.secrets() {
			secret, err := c.Kube.CoreV1().Secrets(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				t.faults = append(t.faults, fmt.Sprintf("secret %s, which %s has applied, is not there", name, k))
				continue
			case err != nil:
				return Finding{}, fmt.Errorf("read secret %s: %w", name, err)
			}
			secrets++
			if key := encryptedKey(secret); key != "" {
				t.faults = append(t.faults, fmt.Sprintf("secret %s of %s is still encrypted at its key %q", name, k, key))
			}
		}
	}
	switch {
	case decrypting == 0:
		return absent("no Kustomization of Flux has decryption"), nil
	case secrets == 0 && len(t.faults)+len(t.warnings) == 0:
		return absent("%d Kustomizations have decryption, and have applied no Secret", decrypting), nil
	}
	t.good = append(t.good, fmt.Sprintf("%d Secrets of %d Kustomizations with decryption are decrypted", secrets, decrypting))
	return t.finding("the Kustomization's spec.decryption must name a Secret with the private key of one of the document's recipients; " +
		"`sops filestatus FILE` says whether a file of the repository is encrypted"), nil
}

// secrets names the Secrets that a Kustomization has applied. An entry of its inventory is namespace_name_group_kind.
func (o fluxObject) secrets() []types.NamespacedName {
	var names []types.NamespacedName
	for _, e := range o.Status.Inventory.Entries {
		if parts := strings.Split(e.ID, "_"); len(parts) == 4 && parts[2] == "" && parts[3] == "Secret" {
			names = append(names, types.NamespacedName{Namespace: parts[0], Name: parts[1]})
		}
	}
	return names
}

// encryptedKey is a key of the secret that SOPS has encrypted or made, "" when there is none.
func encryptedKey(s *corev1.Secret) string {
	for key, value := range s.Data {
		if key == sopsKey || bytes.Contains(value, []byte(sopsMark)) {
			return key
		}
	}
	return ""
}
