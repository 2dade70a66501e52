package validate

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"k8slab/lab/kube"
)

const fluxNamespace = "flux-system"

// noFlux is the detail where there is no Flux.
const noFlux = "the cluster has no Flux: its kinds GitRepository and Kustomization are not served"

// GitOpsChecks are the checks of Flux: its kinds, its controllers, and what they reconcile.
func (c *Cluster) GitOpsChecks() []Check {
	return []Check{
		check(AreaGitOps, "Flux is installed", c.fluxInstalled),
		check(AreaGitOps, "Flux's controllers are ready", c.fluxControllers),
		check(AreaGitOps, "every GitRepository is fetched", c.fluxSources),
		check(AreaGitOps, "every Kustomization is applied", c.fluxApplied),
	}
}

func (c *Cluster) fluxInstalled(ctx context.Context) (Finding, error) {
	sources, hasSources, err := c.listFlux(ctx, gitRepositories)
	if err != nil {
		return Finding{}, err
	}
	applied, hasApplied, err := c.listFlux(ctx, kustomizations)
	if err != nil {
		return Finding{}, err
	}
	const next = "install Flux's definitions again: `flux install`, in the lab `labctl addons install flux`"
	switch {
	case !hasSources && !hasApplied:
		return absent(noFlux), nil
	case !hasSources:
		return fail(next, "%s is not served, %s is", gitRepositories.GroupResource(), kustomizations.GroupResource()), nil
	case !hasApplied:
		return fail(next, "%s is not served, %s is", kustomizations.GroupResource(), gitRepositories.GroupResource()), nil
	}
	return pass("%d GitRepositories, %d Kustomizations", len(sources), len(applied)), nil
}

// hasFlux reports whether any of Flux's kinds is served.
func (c *Cluster) hasFlux(ctx context.Context) (bool, error) {
	_, sources, err := c.listFlux(ctx, gitRepositories)
	if err != nil || sources {
		return sources, err
	}
	_, applied, err := c.listFlux(ctx, kustomizations)
	return applied, err
}

func (c *Cluster) fluxControllers(ctx context.Context) (Finding, error) {
	if has, err := c.hasFlux(ctx); err != nil || !has {
		return absent(noFlux), err
	}
	list, err := c.Kube.AppsV1().Deployments(fluxNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return Finding{}, fmt.Errorf("list deployments in %s: %w", fluxNamespace, err)
	}
	var t tally
	missing := []string{"source-controller", "kustomize-controller"}
	for _, d := range list.Items {
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == d.Name })
		ready, want, err := kube.DeploymentPods(&d)
		switch {
		case err != nil:
			t.faults = append(t.faults, err.Error())
		case want == 0:
			t.faults = append(t.faults, d.Name+" is scaled to 0")
		case ready < want:
			t.faults = append(t.faults, fmt.Sprintf("%s: %d of %d pods ready", d.Name, ready, want))
		default:
			t.good = append(t.good, d.Name+" is ready")
		}
	}
	for _, name := range missing {
		t.faults = append(t.faults, "there is no deployment "+name)
	}
	return t.finding("read `kubectl -n " + fluxNamespace + " describe deployments` and the controllers' logs"), nil
}

func (c *Cluster) fluxSources(ctx context.Context) (Finding, error) {
	sources, served, err := c.listFlux(ctx, gitRepositories)
	if err != nil || !served {
		return absent(noFlux), err
	}
	var t tally
	for _, o := range sources {
		if !t.unsettled(o) {
			// An old artifact is not an error: its time is when the revision changed, and Flux records no other time.
			age := time.Since(o.Status.Artifact.LastUpdateTime.Time).Truncate(time.Second)
			t.good = append(t.good, fmt.Sprintf("%s has been at %s for %s", o, o.revision(), age))
		}
	}
	if len(sources) == 0 {
		return absent("Flux has no GitRepository"), nil
	}
	return t.finding("see `flux get sources git -A`; ask again with `flux reconcile source git NAME -n NAMESPACE`"), nil
}

func (c *Cluster) fluxApplied(ctx context.Context) (Finding, error) {
	applied, served, err := c.listFlux(ctx, kustomizations)
	if err != nil || !served {
		return absent(noFlux), err
	}
	sources, _, err := c.listFlux(ctx, gitRepositories)
	if err != nil {
		return Finding{}, err
	}
	var t tally
	for _, o := range applied {
		if t.unsettled(o) {
			continue
		}
		if newest := sourceRevision(o, sources); newest != "" && newest != o.revision() {
			t.faults = append(t.faults, fmt.Sprintf("%s is at %s, its source at %s", o, o.revision(), newest))
			continue
		}
		t.good = append(t.good, fmt.Sprintf("%s is at %s", o, o.revision()))
	}
	if len(applied) == 0 {
		return absent("Flux has no Kustomization"), nil
	}
	return t.finding("see `flux get kustomizations -A`; ask again with `flux reconcile kustomization NAME -n NAMESPACE`"), nil
}

// unsettled adds an object that is not ready, or suspended. Somebody has suspended it on purpose, so that is a warning.
func (t *tally) unsettled(o fluxObject) bool {
	if o.Spec.Suspend {
		t.warnings = append(t.warnings, o.String()+" is suspended: Flux leaves it as it is until `flux resume`")
		return true
	}
	if err := o.unready(); err != nil {
		t.faults = append(t.faults, fmt.Sprintf("%s: %v", o, err))
		return true
	}
	return false
}

// sourceRevision is the revision of the GitRepository that a Kustomization applies, "" when it applies another kind of source.
func sourceRevision(o fluxObject, sources []fluxObject) string {
	ref := o.Spec.SourceRef
	if ref.Namespace == "" {
		ref.Namespace = o.Metadata.Namespace
	}
	for _, s := range sources {
		if s.Kind == ref.Kind && s.Metadata.Namespace == ref.Namespace && s.Metadata.Name == ref.Name {
			return s.revision()
		}
	}
	return ""
}

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
