// Package image builds the node image: Debian with containerd, Kubernetes and the container images of a cluster already in
// containerd's store. It is named by one hash over all its inputs and kept in a cache, as a root directory for containers and, made
// from it when first asked for, a disk with kernel and initrd for virtual machines. amd64 only; building needs root, or a user namespace.
package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"k8slab/config"
	"k8slab/lab/event"
)

// Image is a finished image in the cache.
type Image struct {
	Dir  string // absolute
	Hash string
}

// Root is the root directory for containers. Nothing may write to it.
func (i Image) Root() string { return filepath.Join(i.Dir, "root") }

// Packages are the Debian packages that an image needs on this computer: one that is built, or with from, one that is fetched.
func Packages(from string) []string {
	packages := []string{"e2fsprogs", "qemu-utils"}
	if from == "" {
		packages = append(packages, "mmdebstrap", "debian-archive-keyring")
	}
	if os.Geteuid() != 0 {
		packages = append(packages, "uidmap") // newuidmap(1), for user namespaces
	}
	return packages
}

// Build returns the image, after building what the cache does not have of it.
func Build(ctx context.Context, spec Spec, events *event.Stream) (Image, error) {
	return get(ctx, spec, cache{events: events})
}

// Find returns the image if it is built; else the error is ErrNotBuilt.
func Find(ctx context.Context, spec Spec, events *event.Stream) (Image, error) {
	return get(ctx, spec, cache{events: events, only: true})
}

func get(ctx context.Context, spec Spec, c cache) (Image, error) {
	dir, err := CacheDir()
	if err != nil {
		return Image{}, err
	}
	c.dir = dir
	if spec.From != "" {
		return c.fromArtefact(ctx, spec)
	}
	b := newBuilder(c)
	b.suite = suiteOf(spec.Distribution)
	if err := b.parts(ctx, spec); err != nil {
		return Image{}, err
	}
	return b.assemble(ctx, spec)
}

func newBuilder(c cache) *builder {
	return &builder{cache: c, dirs: map[string]string{}, from: map[string]origin{}}
}

func (b *builder) parts(ctx context.Context, spec Spec) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { // waits for mirrors while the compiler works
		b.debian, err = b.get(ctx, "debian", debianInputs(b.suite, debianPackages), func(dir string, step *event.Step) error {
			return bootstrap(ctx, b.suite, dir, "minbase", debianPackages, step)
		})
		if err == nil {
			b.netTools, err = b.get(ctx, "net-tools", debianInputs(b.suite, netToolsPackages), func(dir string, step *event.Step) error {
				return bootstrapNetTools(ctx, b.suite, dir, step)
			})
		}
		if err == nil {
			b.busybox, err = b.tree(ctx, b.suite, busyboxTree)
		}
		return err
	})
	g.Go(func() error { return b.programs(ctx, spec) })
	return g.Wait()
}

// programs gets the components, two at a time: one alone leaves processors idle while it downloads and links. Those that are not built beside
// Kubernetes come after it, because they would make its time longer: Flannel, and what kubeadm says the version of.
func (b *builder) programs(ctx context.Context, spec Spec) error {
	components := fixed()
	last := len(components) - 1
	if from := spec.Components[containerdName].Source; from != "" {
		components = slices.DeleteFunc(components, func(c component) bool { return c.name == containerdName })
		last--
	}
	g, beforehand := errgroup.WithContext(ctx)
	g.Go(func() error { return b.kubernetes(beforehand, spec) })
	g.Go(func() error {
		for _, c := range components[:last] {
			if err := b.compile(beforehand, c); err != nil {
				return err
			}
		}
		if from := spec.Components[containerdName].Source; from != "" {
			return b.own(beforehand, families[containerdName], from)
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		return err
	}
	asked, err := b.askedFor(spec)
	if err != nil {
		return err
	}
	g, ctx = errgroup.WithContext(ctx)
	g.SetLimit(2)
	g.Go(func() error { return b.compile(ctx, components[last]) })
	for _, of := range asked {
		g.Go(func() error { return of(ctx) })
	}
	return g.Wait()
}

// askedFor gets the components whose version kubeadm's list of images says: compiled, or where Kubernetes is upstream's release, its images'.
// One that has a source of its own comes from there.
func (b *builder) askedFor(spec Spec) (get []func(context.Context) error, err error) {
	list, err := os.ReadFile(b.bin(kubernetesName, imageList))
	if err != nil {
		return nil, err
	}
	b.images = strings.Fields(string(list))
	for _, name := range []string{"etcd", "coredns"} {
		of := families[name]
		if from := spec.Components[name].Source; from != "" {
			get = append(get, func(ctx context.Context) error { return b.own(ctx, of, from) })
			continue
		}
		ref, version, err := imageAsked(b.images, name)
		if err != nil {
			return nil, err
		}
		c := of.module(version)
		if b.release == nil {
			get = append(get, func(ctx context.Context) error { return b.compile(ctx, c) })
			continue
		}
		image, err := b.release.imageOf(ref)
		if err != nil {
			return nil, err
		}
		p := published{image: image, programs: of.programs}
		p.parts = b.path(c.name+"-"+version, p.inputs()) + downloads
		get = append(get, func(ctx context.Context) error { return b.program(ctx, c.name, version, p) })
	}
	return get, nil
}

func (b *builder) kubernetes(ctx context.Context, spec Spec) error {
	from, err := b.kubernetesSource(ctx, spec)
	if err != nil {
		return err
	}
	if u, ok := from.(upstream); ok {
		b.release = &u
	}
	if err := b.program(ctx, kubernetesName, spec.KubernetesVersion, withImageList{from, spec.KubernetesVersion}); err != nil {
		return err
	}
	return b.replacements(ctx, spec)
}

// imageAsked is the one of the images that has the program, and the Go module version behind its tag: etcd:3.6.8-0 is v3.6.8.
func imageAsked(images []string, program string) (ref, version string, err error) {
	for _, ref := range images {
		path, tag, _ := strings.Cut(ref, ":")
		if filepath.Base(path) == program {
			v, _, _ := strings.Cut(strings.TrimPrefix(tag, "v"), "-")
			return ref, "v" + v, nil
		}
	}
	return "", "", fmt.Errorf("kubeadm's image list has no %s: %s", program, strings.Join(images, " "))
}

func (b *builder) assemble(ctx context.Context, spec Spec) (Image, error) {
	labnode, err := fileHash(spec.Labnode)
	if err != nil {
		return Image{}, fmt.Errorf("labnode, a part of the image: %w", err)
	}
	own, err := ownFilesHash(b.suite)
	if err != nil {
		return Image{}, err
	}
	inputs := append([]string{"image 6", filepath.Base(b.debian), filepath.Base(b.netTools), filepath.Base(b.busybox), labnode, own}, slices.Sorted(slices.Values(b.inputs))...)
	dir, err := b.get(ctx, "node-"+spec.KubernetesVersion, inputs, func(dir string, step *event.Step) error {
		return b.root(ctx, dir, spec.Labnode, step)
	})
	return At(dir), err
}

// At is the image in a directory of the cache.
func At(dir string) Image {
	return Image{Dir: dir, Hash: strings.TrimPrefix(filepath.Base(dir), "node-")}
}

// Entry is one thing in the cache.
type Entry struct {
	Name string    `json:"name"`
	Size int64     `json:"size"` // bytes on disk
	Used time.Time `json:"used"`
	path string
}

// List returns what the cache has, last used first. Unfinished builds are not listed.
func List() ([]Entry, error) {
	dir, err := CacheDir()
	if err != nil {
		return nil, err
	}
	found, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return []Entry{}, nil
	}
	entries := []Entry{}
	for _, f := range found {
		if !f.IsDir() || strings.Contains(f.Name(), partial) {
			continue
		}
		info, err := f.Info()
		if err != nil {
			return nil, err
		}
		path := filepath.Join(dir, f.Name())
		bytes, err := size(path)
		if err != nil {
			return nil, err
		}
		entries = append(entries, Entry{Name: f.Name(), Size: bytes, Used: info.ModTime(), path: path})
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Used.After(entries[j].Used) })
	return entries, err
}

// Prune removes everything that was not used since the given time, and what interrupted builds left. A thing that is being built, or
// that used says is in use, stays.
func Prune(before time.Time, used func(path string) bool) ([]Entry, error) {
	entries, err := List()
	if err != nil {
		return nil, err
	}
	if err := sweepAll(); err != nil {
		return nil, err
	}
	removed, errs := []Entry{}, []error{}
	for _, e := range entries {
		if e.Used.After(before) || used(e.path) {
			continue
		}
		if err := removeTree(e.path); err != nil {
			errs = append(errs, err)
			continue
		}
		_ = os.Remove(e.path + lockSuffix)
		removed = append(removed, e)
	}
	return removed, errors.Join(errs...)
}

// Compiled tells whether the cache has the programs of a node image, which take ten minutes to compile: those of fixed versions, and
// Kubernetes unless it comes from elsewhere.
func Compiled(version, source string) bool {
	dir, err := CacheDir()
	if err != nil {
		return false
	}
	for _, c := range fixed() {
		if !exists((cache{dir: dir}).path(c.name+"-"+c.version(), c.inputs())) {
			return false
		}
	}
	found, _ := filepath.Glob(filepath.Join(dir, kubernetesName+"-"+version+"-*", imageList))
	return source != config.SourceModules && source != config.SourceAuto || len(found) > 0
}

// Programs are those that the image was built with. An image from before they were noted has none: the error wraps fs.ErrNotExist.
func (i Image) Programs() (programs []Program, err error) {
	data, err := os.ReadFile(filepath.Join(i.Root(), buildFile))
	if err == nil {
		err = json.Unmarshal(data, &programs)
	}
	return programs, err
}

// NoPrograms tells whether the error of Programs is that an earlier labctl built the image.
func NoPrograms(err error) bool { return errors.Is(err, fs.ErrNotExist) }
