package image

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/semver"

	"k8slab/config"
	"k8slab/lab/event"
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
		s, err := kubernetesIn(ctx, spec.KubernetesSource, spec.KubernetesVersion, step)
		return s, step.End(err)
	}
	return b.mirror("kubernetes.source", spec.KubernetesSource, spec.KubernetesVersion), nil
}

// kubernetesIn is a directory with all programs of Kubernetes, or with their code, for a cluster of the version.
func kubernetesIn(ctx context.Context, dir, version string, step *event.Step) (source, error) {
	if _, is := projectIn(dir); !is {
		return openDirectory(ctx, dir, version, step)
	}
	c, err := openCheckout(ctx, "kubernetes.source", dir, kubernetesName, slices.Concat(hostPrograms, imagePrograms), version, step)
	if err != nil {
		return nil, err
	}
	// A version with a build is the one that a checkout had when the lab was made.
	if strings.Contains(version, "+") && c.version != version || semver.MajorMinor(c.version) != semver.MajorMinor(version) {
		return nil, fmt.Errorf("kubernetes.source: %s is %s, and the cluster's version is %s; "+
			"make kubernetes.version the same, or remove it: then it is the directory's (a lab that exists keeps its own: labctl down, then up)", dir, c.version, version)
	}
	return c, nil
}

// programsAt is what a path of cluster.yaml gives of the programs: a directory that has them or their code, or the one program itself.
func programsAt(ctx context.Context, key, path, name string, programs []string, version string, step *event.Step) (source, string, error) {
	const own = "own" // what is known of its version
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("%s: %s: %w", key, path, bare(err))
	case !info.IsDir() && len(programs) > 1:
		return nil, "", fmt.Errorf("%s: %s is no directory, and %s are wanted", key, path, strings.Join(programs, ", "))
	case !info.IsDir():
		d, err := openProgram(key, path, programs[0])
		return d, own, err
	}
	if _, is := projectIn(path); !is {
		d, err := openPrograms(key, path, programs, step)
		return d, own, err
	}
	c, err := openCheckout(ctx, key, path, name, programs, version, step)
	if err != nil {
		return nil, "", err
	}
	return c, c.version, nil
}

func (b *builder) mirror(key, url, version string) mirror {
	m := mirror{key: key, url: strings.TrimRight(url, "/"), version: version, fetcher: newFetcher()}
	m.parts = b.kubernetesPath(version, m) + downloads
	return m
}

func (b *builder) upstream(spec Spec) upstream {
	server := releaseServer(spec.Release.Server, strings.Contains(spec.KubernetesVersion, "+"))
	return upstream{b.mirror("kubernetes.release.server", server, spec.KubernetesVersion), strings.TrimRight(spec.Release.Images, "/")}
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
	case exists(b.kubernetesPath(spec.KubernetesVersion, published)) || strings.Contains(spec.KubernetesVersion, "+"): // modules are of releases
		return published
	case b.only:
		return modules
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
	Programs          map[string]string           // as config.Kubernetes has it
	Components        map[string]config.Component // as config.Cluster has them
	From              string                      // the reference of an artefact to take instead of building, as config.Image has it; "" for none
	Distribution      string                      // the release of Debian, as config.Image has it; only to build
	Labnode           string                      // path of the labnode binary, which is part of the image
}

// SpecOf is the image of the cluster, whose version of Kubernetes does not float: see Settle.
func SpecOf(c *config.Cluster, labnode string) Spec {
	k := c.Kubernetes
	return Spec{
		KubernetesVersion: k.Version, KubernetesSource: k.Source, Release: k.Release, Programs: k.Programs, Components: c.Components(),
		From: c.Image.From, Distribution: c.Image.Distribution, Labnode: labnode,
	}
}

// builder collects the parts of one image. Each is cached on its own, so a change of one leaves the others.
type builder struct {
	cache
	suite    string // release of Debian
	debian   string
	netTools string
	busybox  string
	images   []string  // what kubeadm asks for
	release  *upstream // of Kubernetes; nil if it comes from elsewhere

	mu     sync.Mutex
	dirs   map[string]string // component, or program of Kubernetes that comes from elsewhere → directory of the programs
	from   map[string]origin // the same → where they come from
	inputs []string          // of all the parts
}

// bin is the path of a program, or of the list of images that kubeadm asks for.
func (b *builder) bin(component, program string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return filepath.Join(b.dirs[b.partOf(component, program)], program)
}

// partOf is the key of dirs for a program.
func (b *builder) partOf(component, program string) string {
	own := program
	if program == imageList {
		own = "kubeadm"
	}
	if _, has := b.dirs[own]; has && component == kubernetesName {
		return own
	}
	return component
}
