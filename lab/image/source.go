package image

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8slab/config"
)

// kubernetesSource is the one that spec asks for.
func (b *builder) kubernetesSource(ctx context.Context, spec Spec) (source, error) {
	switch {
	case spec.KubernetesSource == "" || spec.KubernetesSource == config.SourceModules:
		return kubernetes(spec.KubernetesVersion), nil
	case spec.KubernetesSource == config.SourceRelease:
		return b.upstream(spec), nil
	case spec.KubernetesSource == config.SourceAuto:
		return b.choose(ctx, spec, answerBudget), nil
	case filepath.IsAbs(spec.KubernetesSource):
		step := b.events.Start("", "image: kubernetes.source", 0)
		d, err := openDirectory(ctx, spec.KubernetesSource, spec.KubernetesVersion, step)
		return d, step.End(err)
	}
	return b.mirror("kubernetes.source", spec.KubernetesSource, spec.KubernetesVersion), nil
}

func (b *builder) mirror(key, url, version string) mirror {
	m := mirror{key: key, url: strings.TrimRight(url, "/"), version: version, fetcher: newFetcher()}
	m.parts = b.kubernetesPath(version, m) + downloads
	return m
}

func (b *builder) upstream(spec Spec) upstream {
	return upstream{b.mirror("kubernetes.release.server", spec.Release.Server, spec.KubernetesVersion), strings.TrimRight(spec.Release.Images, "/")}
}

func (b *builder) kubernetesPath(version string, s source) string {
	return b.path(kubernetesName+"-"+version, s.inputs())
}

// choose is what config.SourceAuto stands for: what the cache has, else the release, else, if its servers do not have it, modules.
func (b *builder) choose(ctx context.Context, spec Spec, budget time.Duration) source {
	modules, published := kubernetes(spec.KubernetesVersion), b.upstream(spec)
	switch {
	case exists(b.kubernetesPath(spec.KubernetesVersion, modules)):
		return modules
	case exists(b.kubernetesPath(spec.KubernetesVersion, published)):
		return published
	}
	step := b.events.Start("", "image: kubernetes.source", 0)
	if why := published.missing(ctx, budget); why != nil {
		step.EndWith("modules, which are compiled: the release is not to be had: " + why.Error())
		return modules
	}
	step.EndWith("release: " + published.url + " has " + spec.KubernetesVersion)
	return published
}

// Spec says which image.
type Spec struct {
	KubernetesVersion string // vMAJOR.MINOR.PATCH
	KubernetesSource  string // as config.Kubernetes has it
	Release           config.Release
	From              string // the reference of an artefact to take instead of building, as config.Image has it; "" for none
	Labnode           string // path of the labnode binary, which is part of the image
}

// builder collects the parts of one image. Each is cached on its own, so a change of one leaves the others.
type builder struct {
	cache
	debian   string
	netTools string
	busybox  string
	images   []string  // what kubeadm asks for
	from     *upstream // of Kubernetes; nil if it comes from elsewhere

	mu     sync.Mutex
	dirs   map[string]string // component → directory of its programs
	inputs []string          // of all the parts
}

func (b *builder) bin(component, program string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return filepath.Join(b.dirs[component], program)
}
