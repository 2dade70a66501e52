package image

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8slab/lab/event"
)

// addonImage is how the container image of an add-on is made: of a component's program, of Debian packages, or of packages with labnode.
type addonImage struct {
	component  component
	tree       *tree
	labnode    bool
	entrypoint []string // the program first, where it is in the image
}

// tree is a directory with the files of Debian packages.
type tree struct {
	name     string
	packages []string
	finish   func(dir string) error
}

var (
	busyboxTree = &tree{"busybox", []string{"busybox-static"}, finishBusybox}
	gitTree     = &tree{"git", []string{"git"}, finishGit}
)

// addonImages are all of them by their names.
func addonImages() map[string]addonImage {
	return map[string]addonImage{
		"k8slab/busybox:lab":                {tree: busyboxTree, entrypoint: []string{"/bin/busybox"}},
		"k8slab/git:lab":                    {tree: gitTree, labnode: true, entrypoint: []string{"/labnode", "gitserver"}},
		"k8slab/kustomize-controller:lab":   {component: kustomizeController, entrypoint: []string{"/kustomize-controller"}},
		"k8slab/local-path-provisioner:lab": {component: localPathProvisioner, entrypoint: []string{"/local-path-provisioner"}},
		"k8slab/metallb-controller:lab":     {component: metalLB, entrypoint: []string{"/controller"}},
		"k8slab/metallb-speaker:lab":        {component: metalLB, entrypoint: []string{"/speaker"}},
		"k8slab/metrics-server:lab":         {component: metricsServer, entrypoint: []string{"/metrics-server"}},
		"k8slab/node-exporter:lab":          {component: nodeExporter, entrypoint: []string{"/node_exporter"}},
		"k8slab/prometheus:lab":             {component: prometheus, entrypoint: []string{"/prometheus"}},
		"k8slab/registry:lab":               {component: distributionRegistry, entrypoint: []string{"/registry"}},
		"k8slab/source-controller:lab":      {component: sourceController, entrypoint: []string{"/source-controller"}},
	}
}

// AddonImages gives an archive of each of the named container images, after building what the cache does not have of them. containerd
// imports the archives. The names are those that lab/addon has. Distribution is as
// config.Image has it.
func AddonImages(ctx context.Context, refs []string, distribution, labnode string, events *event.Stream) (map[string]string, error) {
	dir, err := CacheDir()
	if err != nil {
		return nil, err
	}
	c := cache{dir: dir, events: events}
	suite := suiteOf(distribution)
	archives := map[string]string{}
	for _, ref := range refs { // one after another: each build uses all cores itself
		made, known := addonImages()[ref]
		if !known {
			return nil, fmt.Errorf("labctl cannot build the container image %s", ref)
		}
		if archives[ref], err = c.addonArchive(ctx, ref, made, suite, labnode); err != nil {
			return nil, err
		}
	}
	return archives, nil
}

// Sops is the path of the sops command, after building it if the cache does not have it.
func Sops(ctx context.Context, events *event.Stream) (string, error) {
	dir, err := CacheDir()
	if err != nil {
		return "", err
	}
	dir, err = cache{dir: dir, events: events}.component(ctx, sops)
	return filepath.Join(dir, "sops"), err
}

func (c cache) component(ctx context.Context, p component) (string, error) {
	return c.get(ctx, p.name+"-"+p.version(), p.inputs(), func(dir string, step *event.Step) error { return p.build(ctx, dir, step) })
}

func (c cache) tree(ctx context.Context, suite string, t *tree) (string, error) {
	return c.get(ctx, t.name, debianInputs(suite, t.packages), func(dir string, step *event.Step) error {
		if err := packageTree(ctx, suite, dir, t.packages, step); err != nil {
			return err
		}
		return t.finish(dir)
	})
}

// addonArchive is the path of the image's archive.
func (c cache) addonArchive(ctx context.Context, ref string, made addonImage, suite, labnode string) (string, error) {
	img := containerImage{ref: ref, entrypoint: made.entrypoint}
	inputs := append([]string{"add-on image 1", ref}, made.entrypoint...)
	if made.component.name != "" {
		dir, err := c.component(ctx, made.component)
		if err != nil {
			return "", err
		}
		img.program, img.path = filepath.Join(dir, filepath.Base(made.entrypoint[0])), made.entrypoint[0]
		inputs = append(inputs, filepath.Base(dir))
	}
	if t := made.tree; t != nil {
		dir, err := c.tree(ctx, suite, t)
		if err != nil {
			return "", err
		}
		img.base = dir
		inputs = append(inputs, filepath.Base(dir))
	}
	if made.labnode {
		hash, err := fileHash(labnode)
		if err != nil {
			return "", fmt.Errorf("labnode, a part of %s: %w", ref, err)
		}
		img.program, img.path = labnode, made.entrypoint[0]
		inputs = append(inputs, hash)
	}
	dir, err := c.get(ctx, "addon-"+addonName(ref), inputs, func(dir string, _ *event.Step) error {
		return writeImages(filepath.Join(dir, addonArchive), []containerImage{img})
	})
	return filepath.Join(dir, addonArchive), err
}

const addonArchive = "image.tar"

// addonName is NAME of k8slab/NAME:lab.
func addonName(ref string) string {
	name, _, _ := strings.Cut(filepath.Base(ref), ":")
	return name
}

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
	metalLB = component{
		name:    "metallb",
		modules: []module{{metallb, "v0.15.2"}},
		tools:   []string{metallb + "/controller", metallb + "/speaker"},
		// No registry has the version of this module that MetalLB asks for. It is for BGP, which a lab does not use.
		replace: []string{"github.com/metallb/frr-k8s => github.com/metallb/frr-k8s v0.0.21"},
	}
	metricsServer = component{
		name:    "metrics-server",
		modules: []module{{"sigs.k8s.io/metrics-server", "v0.9.0"}},
		tools:   []string{"sigs.k8s.io/metrics-server/cmd/metrics-server"},
	}
	// Without the drivers of clouds' storage.
	distributionRegistry = component{
		name:    "registry",
		modules: []module{{distribution, "v3.1.2"}},
		main:    []string{"cmd/registry/main.go"},
		without: []string{
			distribution + "/registry/storage/driver/azure", distribution + "/registry/storage/driver/gcs", distribution + "/registry/storage/driver/s3-aws",
			distribution + "/registry/storage/driver/middleware/cloudfront",
		},
		ldflags: "-X " + distribution + "/version.version=v3.1.2",
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

const (
	distribution = "github.com/distribution/distribution/v3"
	metallb      = "go.universe.tf/metallb"
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
