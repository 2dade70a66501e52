package image

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8slab/lab/event"
	"k8slab/lab/inventory"
)

// Release is what of a node image an upgrade brings to nodes that run: programs, and container images.
type Release struct {
	Images []string // the container images that its kubeadm asks for
	Etcd   string   // the version of the one of etcd

	root string
	list inventory.List
}

// Release is the one of the image's Kubernetes, whose version that is.
func (i Image) Release(ctx context.Context, version string) (Release, error) {
	kubeadm, _ := i.program("kubeadm")
	names, err := imageNames(ctx, kubeadm, version)
	if err != nil {
		return Release{}, err
	}
	_, etcd, err := imageAsked(names, "etcd")
	if err != nil {
		return Release{}, err
	}
	list, err := inventory.Read(i.Root())
	return Release{Images: names, Etcd: etcd, root: i.Root(), list: list}, err
}

// EtcdImage is the name of the container image of an etcd version and the file of its archive, after building what the cache does not have of it.
func EtcdImage(ctx context.Context, version string, events *event.Stream) (reference, archive string, err error) {
	dir, err := CacheDir()
	if err != nil {
		return "", "", err
	}
	reference = "registry.k8s.io/etcd:" + strings.TrimPrefix(version, "v") + "-0"
	archive, err = cache{dir: dir, events: events}.addonArchive(ctx, reference,
		addonImage{component: etcd(version), entrypoint: []string{"/usr/local/bin/etcd"}}, "", "")
	return reference, archive, err
}

// Digest is that of the container image's manifest, "" if the node image has none of the name.
func (r Release) Digest(name string) string {
	for _, i := range r.list.Images {
		if i.Name == name {
			return i.Digest
		}
	}
	return ""
}

// WriteImages writes an archive of the container images.
func (r Release) WriteImages(to io.Writer, names []string) error {
	var images []inventory.Image
	for _, name := range names {
		k := slices.IndexFunc(r.list.Images, func(i inventory.Image) bool { return i.Name == name })
		if k < 0 {
			return fmt.Errorf("the node image %s has no container image %s", r.root, name)
		}
		images = append(images, r.list.Images[k])
	}
	all, err := inventory.OpenImages(r.root, images...)
	if err != nil {
		return err
	}
	return all.Write(to)
}

// Programs of a node in the order in which an upgrade replaces them: kubelet after kubeadm has made its configuration anew, and after the
// node was drained.
var (
	firstPrograms = programs("kubeadm", "kubectl", "crictl", "etcdctl", "etcdutl")
	lastPrograms  = programs("kubelet")
)

// Onto is a node's list with the release's programs in the place of its own, with kubelet or all but it, and the paths of those.
func (r Release) Onto(l inventory.List, kubelet bool) (onto inventory.List, paths []string) {
	paths = slices.Clone(firstPrograms)
	if kubelet {
		paths = append(paths, lastPrograms...)
	}
	onto = inventory.List{Files: slices.Clone(l.Files), Images: l.Images}
	for k, f := range onto.Files {
		i := slices.IndexFunc(r.list.Files, func(of inventory.File) bool { return of.Path == f.Path })
		if i >= 0 && slices.Contains(paths, f.Path) {
			onto.Files[k] = r.list.Files[i]
		}
	}
	return onto, paths
}
