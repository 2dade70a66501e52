package image

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8slab/lab/event"
)

// family is a part of the nodes whose programs cluster.yaml can take from elsewhere.
type family struct {
	name     string
	programs []string
	module   func(version string) component
}

var families = map[string]family{
	"etcd":         {"etcd", []string{"etcd", "etcdctl", "etcdutl"}, etcd},
	"coredns":      {"coredns", []string{"coredns"}, coredns},
	containerdName: {containerdName, []string{"containerd", "containerd-shim-runc-v2", "ctr"}, containerd},
}

// own gets a component from the source that cluster.yaml names.
func (b *builder) own(ctx context.Context, f family, from string) error {
	if !filepath.IsAbs(from) {
		return b.compile(ctx, f.module(from))
	}
	key := f.name + ".source"
	step := b.events.Start("", "image: "+key, 0)
	s, version, err := programsAt(ctx, key, from, f.name, f.programs, "", step)
	if err := step.End(err); err != nil {
		return err
	}
	return b.program(ctx, f.name, version, s)
}

// replacements gets the programs of Kubernetes that do not come from its source. Each is a part of its own: a change of one leaves the others.
func (b *builder) replacements(ctx context.Context, spec Spec) error {
	for _, program := range slices.Sorted(maps.Keys(spec.Programs)) {
		key := "kubernetes.programs." + program
		step := b.events.Start("", "image: "+key, 0)
		s, version, err := programsAt(ctx, key, spec.Programs[program], kubernetesName, []string{program}, spec.KubernetesVersion, step)
		if err := step.End(err); err != nil {
			return err
		}
		if program == "kubeadm" {
			s = withImageList{s, spec.KubernetesVersion}
		}
		if err := b.program(ctx, program, version, s); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) compile(ctx context.Context, c component) error {
	return b.program(ctx, c.name, c.version(), c)
}

// withImageList writes the names of the images that kubeadm asks for beside it.
type withImageList struct {
	source
	version string
}

func (w withImageList) build(ctx context.Context, dir string, step *event.Step) error {
	if err := w.source.build(ctx, dir, step); err != nil {
		return err
	}
	kubeadm := filepath.Join(dir, "kubeadm")
	if err := os.Chmod(kubeadm, 0o755); err != nil { // whatever the umask: it is run as nobody
		return err
	}
	names, err := imageNames(ctx, kubeadm, w.version)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, imageList), []byte(strings.Join(names, "\n")+"\n"), 0o644)
}

func (b *builder) program(ctx context.Context, name, version string, from source) error {
	dir, err := b.get(ctx, name+"-"+version, from.inputs(), func(dir string, step *event.Step) error { return from.build(ctx, dir, step) })
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dirs[name], b.from[name] = dir, from.origin()
	b.inputs = append(b.inputs, filepath.Base(dir))
	return err
}
