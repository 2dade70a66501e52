package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"

	"k8slab/lab/command"
	"k8slab/lab/event"
)

// An artefact is a node image as a registry or a file has it: an OCI image whose layers, compressed with zstd, are the parts of the root tree
// for containers. The disk for virtual machines is made of that tree.

// Labels of an artefact.
const (
	formatLabel     = "k8slab.format"
	kubernetesLabel = "k8slab.kubernetes"
)

// format changes when a node image of an earlier labctl cannot be used.
const format = "1"

// layers are the parts of the root tree, which are packed, sent and fetched at the same time: the container images, and the rest.
var layers = [][]string{
	{"." + sharedStore},
	{"--exclude=." + sharedStore, "."},
}

// Artefact packs the image, unless the cache has it packed, and returns the directory of its OCI layout and its digest.
func (i Image) Artefact(ctx context.Context, version string, events *event.Stream) (dir string, digest v1.Hash, err error) {
	root, err := CacheDir()
	if err != nil {
		return "", digest, err
	}
	dir, err = cache{dir: root, events: events}.get(ctx, "artefact-"+version, []string{"artefact " + format, i.Hash}, func(dir string, step *event.Step) error {
		return i.pack(ctx, dir, version, step)
	})
	if err != nil {
		return "", digest, err
	}
	img, err := only(dir)
	if err != nil {
		return "", digest, err
	}
	digest, err = img.Digest()
	return dir, digest, err
}

// only is the image of an OCI layout that has one.
func only(dir string) (v1.Image, error) {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	list, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(list.Manifests) != 1 {
		return nil, fmt.Errorf("it has %d images, and an exported node image has one", len(list.Manifests))
	}
	return index.Image(list.Manifests[0].Digest)
}

func (i Image) pack(ctx context.Context, dir, version string, step *event.Step) error {
	img, err := mutate.ConfigFile(mutate.MediaType(empty.Image, types.OCIManifestSchema1), &v1.ConfigFile{
		OS: "linux", Architecture: "amd64", RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{Labels: map[string]string{formatLabel: format, kubernetesLabel: version}},
	})
	if err != nil {
		return err
	}
	img = mutate.ConfigMediaType(img, types.OCIConfigJSON)
	for k, what := range layers {
		step.Progress("packing part %d of %d", k+1, len(layers))
		file := filepath.Join(dir, fmt.Sprintf("layer%d", k))
		if err := packLayer(ctx, i.Root(), what, file); err != nil {
			return err
		}
		layer, err := tarball.LayerFromFile(file, tarball.WithMediaType(types.OCILayerZStd))
		if err != nil {
			return err
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			return err
		}
	}
	step.Progress("writing the layout")
	to, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = to.AppendImage(img)
	}
	for k := range layers {
		err = errors.Join(err, os.Remove(filepath.Join(dir, fmt.Sprintf("layer%d", k))))
	}
	return err
}

// owned are the options of tar that keep what a root tree needs: owners by number, capabilities of programs.
var owned = []string{"--numeric-owner", "--xattrs", "--xattrs-include=*"}

// packLayer writes a part of the tree to a file: tar, because it knows owners, capabilities and hard links, and zstd.
func packLayer(ctx context.Context, root string, what []string, file string) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	packer, err := zstd.NewWriter(out)
	if err != nil {
		return err
	}
	argv := slices.Concat([]string{"tar", "--create", "--file=-", "--sort=name", "--directory=" + root}, owned, what)
	if _, err := (command.Command{Argv: argv, Stdout: packer}).Run(ctx); err != nil {
		return errors.Join(err, packer.Close())
	}
	return errors.Join(packer.Close(), out.Close())
}

// Export writes the artefact of a directory to w: a tar archive of its OCI layout, which other programs read too.
func Export(dir string, w io.Writer) error {
	out := tar.NewWriter(w)
	if err := out.AddFS(os.DirFS(dir)); err != nil {
		return err
	}
	return out.Close()
}

// Repository is what names an image without its tag or digest: HOST/NAME.
func Repository(reference string) (string, error) {
	ref, err := name.ParseReference(reference, name.StrictValidation)
	if err != nil {
		return "", err
	}
	return ref.Context().Name(), nil
}

// Push sends the artefact of a directory to a registry under a tag, with the credentials that docker login or podman login left.
func Push(ctx context.Context, dir, reference string, step *event.Step) error {
	tag, err := name.NewTag(reference, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("%w; next: use HOST/NAME:TAG", err)
	}
	img, err := only(dir)
	if err != nil {
		return err
	}
	updates := make(chan v1.Update, 16)
	done := make(chan struct{})
	go func() {
		defer close(done)
		said := time.Time{}
		for u := range updates { // one for each piece that is sent
			if u.Error == nil && time.Since(said) > time.Second {
				step.Progress("%d of %d MiB", u.Complete>>20, u.Total>>20)
				said = time.Now()
			}
		}
	}()
	err = remote.Write(tag, img, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithProgress(updates))
	<-done
	if err != nil {
		return fmt.Errorf("push to %s: %w", tag, err)
	}
	return nil
}
