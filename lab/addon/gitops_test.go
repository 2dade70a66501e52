package addon

import (
	"strings"
	"testing"
)

func manifestWith(t *testing.T, a Addon, v Values) string {
	t.Helper()
	manifest, err := a.Manifest(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(manifest)
}

// Flux refuses a Kustomization whose key for decryption is not there.
func TestFluxDecryptsOnlyWithSops(t *testing.T) {
	with, without := manifestWith(t, flux(), Values{Sops: true}), manifestWith(t, flux(), Values{})
	if !strings.HasSuffix(with, "  wait: true\n  decryption:\n    provider: sops\n    secretRef: {name: sops-age}\n") {
		t.Errorf("with SOPS it ends with %q", with[len(with)-100:])
	}
	if !strings.HasSuffix(without, "  wait: true\n") || strings.Contains(without, "sops") {
		t.Errorf("without SOPS it ends with %q", without[len(without)-100:])
	}
}

// The repository is in a directory of one node.
func TestGitStaysOnItsNode(t *testing.T) {
	if got := manifestWith(t, git(), Values{GitNode: "cp1"}); !strings.Contains(got, "nodeSelector:\n        kubernetes.io/hostname: cp1 ") {
		t.Error(got)
	}
}

func TestSopsHasNoObjects(t *testing.T) {
	if got := manifestWith(t, sops(), Values{}); got != "" {
		t.Error(got)
	}
}
