package image

import (
	"os"
	"path/filepath"
)

// What runs in the add-ons' containers, and the sops command. Their versions do not depend on Kubernetes'.
var (
	nodeExporter = component{
		name:    "node-exporter",
		modules: []module{{"github.com/prometheus/node_exporter", "v1.12.1"}},
		tools:   []string{"github.com/prometheus/node_exporter"},
		ldflags: "-X github.com/prometheus/common/version.Version=1.12.1",
	}
	prometheus = component{
		name:    "prometheus",
		modules: []module{{"github.com/prometheus/prometheus", "v0.313.5"}}, // Prometheus 3.13.5
		tools:   []string{"github.com/prometheus/prometheus/cmd/prometheus"},
		ldflags: "-X github.com/prometheus/common/version.Version=3.13.5",
		// Without the discovery of every cloud's machines, which is most of its dependencies.
		tags: "remove_all_sd,enable_kubernetes_sd",
	}
	localPathProvisioner = component{
		name:    "local-path-provisioner",
		modules: []module{{"github.com/rancher/local-path-provisioner", "v0.0.30"}},
		tools:   []string{"github.com/rancher/local-path-provisioner"},
		ldflags: "-X main.VERSION=v0.0.30",
	}
	metricsServer = component{
		name:    "metrics-server",
		modules: []module{{"sigs.k8s.io/metrics-server", "v0.9.0"}},
		tools:   []string{"sigs.k8s.io/metrics-server/cmd/metrics-server"},
	}
	sourceController = component{
		name:    "source-controller",
		modules: []module{{"github.com/fluxcd/source-controller", "v1.9.3"}},
		tools:   []string{"github.com/fluxcd/source-controller"},
		replace: []string{digest},
	}
	kustomizeController = component{
		name:    "kustomize-controller",
		modules: []module{{"github.com/fluxcd/kustomize-controller", "v1.9.3"}},
		tools:   []string{"github.com/fluxcd/kustomize-controller"},
		replace: []string{digest, "sigs.k8s.io/kustomize/api => sigs.k8s.io/kustomize/api v0.21.1", "sigs.k8s.io/kustomize/kyaml => sigs.k8s.io/kustomize/kyaml v0.21.1"},
	}
	sops = component{
		name:    "sops",
		modules: []module{{"github.com/getsops/sops/v3", "v3.10.2"}},
		tools:   []string{"github.com/getsops/sops/v3/cmd/sops"},
	}
)

// digest has BLAKE3, which no release of go-digest has; Flux' own go.mod files replace it too.
const digest = "github.com/opencontainers/go-digest => github.com/opencontainers/go-digest v1.0.1-0.20250813155314-89707e38ad1a"

// finishBusybox names the commands that volumes' helper pods call.
func finishBusybox(dir string) error {
	for _, name := range []string{"sh", "mkdir", "rm"} {
		if err := os.Symlink("busybox", filepath.Join(dir, "bin", name)); err != nil {
			return err
		}
	}
	return nil
}

// finishGit removes Perl's library, two thirds of the tree: nothing that serves repositories is a script of it.
func finishGit(dir string) error {
	for _, path := range []string{"usr/share/perl", "usr/share/perl5", "usr/lib/x86_64-linux-gnu/perl", "usr/lib/x86_64-linux-gnu/perl5"} {
		if err := os.RemoveAll(filepath.Join(dir, path)); err != nil {
			return err
		}
	}
	return nil
}
