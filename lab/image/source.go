package image

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8slab/config"
	"k8slab/lab/command"
	"k8slab/lab/event"
)

// source provides the programs of Kubernetes. A component is a source that compiles them.
type source interface {
	// inputs decide the result of build. Computing them needs no network, so that the cache can be used without one.
	inputs() []string
	// build puts the programs into dir. Instead of one of imagePrograms it may put an image archive, PROGRAM.tar.
	build(ctx context.Context, dir string, step *event.Step) error
}

// hostPrograms are installed in the node, imagePrograms run in containers.
var (
	hostPrograms  = []string{"kubeadm", "kubelet", "kubectl"}
	imagePrograms = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"}
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
	return b.mirror(spec.KubernetesSource, spec.KubernetesVersion), nil
}

func (b *builder) mirror(url, version string) mirror {
	m := mirror{url: strings.TrimRight(url, "/"), version: version, fetcher: newFetcher()}
	m.parts = b.kubernetesPath(version, m) + downloads
	return m
}

func (b *builder) upstream(spec Spec) upstream {
	return upstream{b.mirror(spec.Release.Server, spec.KubernetesVersion), strings.TrimRight(spec.Release.Images, "/")}
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

// programProblem says why the file cannot run on a node, nil if it can.
func programProblem(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return bare(err)
	}
	if info.Mode()&0o111 == 0 {
		return errors.New("is not executable; chmod +x makes it so")
	}
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("is not a program for Linux: %w", bare(err))
	}
	defer func() { _ = f.Close() }()
	if f.Class != elf.ELFCLASS64 || f.Machine != elf.EM_X86_64 || f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return fmt.Errorf("is not a program for amd64 but for %s, %s, %s; take the files of linux/amd64", f.Class, f.Machine, f.Type)
	}
	return nil
}

// kubeadmBudget bounds a call of kubeadm that needs no network.
const kubeadmBudget = time.Minute

// runKubeadm runs a kubeadm that may have come from a mirror.
func runKubeadm(ctx context.Context, kubeadm string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, kubeadmBudget, fmt.Errorf("no answer for %s", kubeadmBudget))
	defer cancel()
	return command.Command{Argv: append([]string{kubeadm}, args...), Foreign: true}.Run(ctx)
}

// versionProblem says that kubeadm is of another version, or why it does not tell.
func versionProblem(ctx context.Context, kubeadm, version string) error {
	out, err := runKubeadm(ctx, kubeadm, "version", "-o", "short")
	if err != nil {
		return fmt.Errorf("does not tell its version: %w", err)
	}
	if got := strings.TrimSpace(out); got != version {
		return fmt.Errorf("is of %s and kubernetes.version is %s; make them the same", got, version)
	}
	return nil
}

// imageNames are the images that kubeadm asks for in a cluster of the version.
func imageNames(ctx context.Context, kubeadm, version string) ([]string, error) {
	out, err := runKubeadm(ctx, kubeadm, "config", "images", "list", "--kubernetes-version", version)
	return strings.Fields(out), err
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
