package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/klauspost/compress/zstd"

	"k8slab/lab/command"
	"k8slab/lab/event"
	"k8slab/lab/inventory"
)

// Fetched is an artefact in the cache.
type Fetched struct {
	Digest     string `json:"digest"`     // sha256:HEX of its manifest
	Kubernetes string `json:"kubernetes"` // version
	Dir        string `json:"-"`
}

// fetchedDir is where the artefact of a digest is in the cache.
func (c cache) fetchedDir(digest string) string { return c.path("fetched", []string{digest}) }

// Pull fetches the artefact that a reference names, by tag or by digest, into the cache. Parts that arrived are not fetched again.
func Pull(ctx context.Context, reference string, events *event.Stream) (Fetched, error) {
	ref, err := name.ParseReference(reference, name.StrictValidation)
	if err != nil {
		return Fetched{}, fmt.Errorf("%w; next: use HOST/NAME:TAG or HOST/NAME@sha256:DIGEST", err)
	}
	root, err := CacheDir()
	if err != nil {
		return Fetched{}, err
	}
	c := cache{dir: root, events: events}
	if d, pinned := ref.(name.Digest); pinned && exists(c.fetchedDir(d.DigestStr())) {
		return c.fetched(d.DigestStr())
	}
	img, err := ask(ctx, ref)
	if err != nil {
		return Fetched{}, err
	}
	return c.fetch(ctx, img, func(dir string, layers []v1.Layer, step *event.Step) ([]string, error) {
		return fetchLayers(ctx, ref.Context(), dir, layers, step)
	})
}

// Import reads an artefact that Export wrote, into the cache.
func Import(ctx context.Context, from io.Reader, events *event.Stream) (Fetched, error) {
	root, err := CacheDir()
	if err != nil {
		return Fetched{}, err
	}
	c := cache{dir: root, events: events}
	if err := c.make(); err != nil {
		return Fetched{}, err
	}
	dir, err := os.MkdirTemp(root, "import"+partial)
	if err != nil {
		return Fetched{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := readLayout(from, dir); err != nil {
		return Fetched{}, err
	}
	img, err := only(dir)
	if err != nil {
		return Fetched{}, fmt.Errorf("it is no exported node image: %w", err)
	}
	return c.fetch(ctx, img, func(_ string, layers []v1.Layer, _ *event.Step) (files []string, err error) {
		for _, l := range layers {
			digest, err := l.Digest()
			if err != nil {
				return nil, err
			}
			file := filepath.Join(dir, "blobs", digest.Algorithm, digest.Hex)
			if got, err := fileHash(file); err != nil || got != digest.Hex {
				return nil, errors.Join(err, fmt.Errorf("the archive is damaged: the SHA-256 of a part is %s, not %s", got, digest.Hex))
			}
			files = append(files, file)
		}
		return files, nil
	})
}

// layoutFile is what an OCI layout consists of.
var layoutFile = regexp.MustCompile(`^(oci-layout|index\.json|blobs/sha256/[0-9a-f]{64})$`)

// readLayout writes the files of an archived OCI layout to dir, and leaves out everything else.
func readLayout(from io.Reader, dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o755); err != nil {
		return err
	}
	for archive := tar.NewReader(from); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("it is no exported node image: %w", err)
		}
		at := path.Clean(head.Name)
		if head.Typeflag != tar.TypeReg || !layoutFile.MatchString(at) {
			continue
		}
		file, err := os.OpenFile(filepath.Join(dir, at), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, archive)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
}

// fetch unpacks an artefact whose layers get brings as files.
func (c cache) fetch(ctx context.Context, img v1.Image, get func(dir string, layers []v1.Layer, step *event.Step) ([]string, error)) (Fetched, error) {
	hash, err := img.Digest()
	if err != nil {
		return Fetched{}, err
	}
	if err := usable(img); err != nil {
		return Fetched{}, err
	}
	parts, err := img.Layers()
	if err != nil {
		return Fetched{}, err
	}
	_, err = c.get(ctx, "fetched", []string{hash.String()}, func(dir string, step *event.Step) error {
		files, err := get(c.fetchedDir(hash.String())+downloads, parts, step)
		if err != nil {
			return err
		}
		step.Progress("unpacking")
		root := filepath.Join(dir, "root")
		if err := os.Mkdir(root, 0o755); err != nil {
			return err
		}
		for _, file := range slices.Backward(files) { // the last has the directories
			if err := unpack(ctx, file, root); err != nil {
				return err
			}
		}
		config, err := img.RawConfigFile()
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, fetchedConfig), config, 0o644)
	})
	if err != nil {
		return Fetched{}, err
	}
	if err := removeTree(c.fetchedDir(hash.String()) + downloads); err != nil {
		return Fetched{}, err
	}
	return c.fetched(hash.String())
}

// fetchedConfig is the artefact's config beside its root tree.
const fetchedConfig = "config.json"

func (c cache) fetched(digest string) (Fetched, error) {
	dir := c.fetchedDir(digest)
	file, err := os.Open(filepath.Join(dir, fetchedConfig))
	if err != nil {
		return Fetched{}, err
	}
	defer func() { _ = file.Close() }()
	config, err := v1.ParseConfigFile(file)
	if err != nil {
		return Fetched{}, err
	}
	return Fetched{Digest: digest, Kubernetes: config.Config.Labels[kubernetesLabel], Dir: dir}, touch(dir)
}

// usable says why the image cannot be a node's.
func usable(img v1.Image) error {
	config, err := img.ConfigFile()
	switch {
	case err != nil:
		return err
	case config.Config.Labels[kubernetesLabel] == "":
		return errors.New("it is an image, but not one of nodes; next: labctl image push makes one")
	case config.Config.Labels[formatLabel] != format:
		return fmt.Errorf("it is of another version of labctl: its format is %s, and this one has %s; next: labctl image push makes it anew",
			config.Config.Labels[formatLabel], format)
	case config.Architecture != "amd64":
		return fmt.Errorf("it is for %s, and nodes are amd64", config.Architecture)
	}
	return nil
}

// unpack adds what a layer has to the tree.
func unpack(ctx context.Context, layer, root string) error {
	file, err := os.Open(layer)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	content, err := zstd.NewReader(file)
	if err != nil {
		return err
	}
	defer content.Close()
	argv := slices.Concat([]string{"tar", "--extract", "--file=-", "--same-owner", "--same-permissions", "--directory=" + root}, owned)
	_, err = command.Command{Argv: argv, Stdin: content}.Run(ctx)
	return err
}

// fromArtefact is the node image of an artefact, with this labctl's own labnode: what they say to each other changes.
func (c cache) fromArtefact(ctx context.Context, spec Spec) (Image, error) {
	f, err := Pull(ctx, spec.From, c.events)
	if err != nil {
		return Image{}, fmt.Errorf("image.from: %w", err)
	}
	if f.Kubernetes != spec.KubernetesVersion {
		return Image{}, fmt.Errorf("image.from has Kubernetes %s, and kubernetes.version is %s; next: make them the same in cluster.yaml", f.Kubernetes, spec.KubernetesVersion)
	}
	labnode, err := fileHash(spec.Labnode)
	if err != nil {
		return Image{}, fmt.Errorf("labnode, a part of the image: %w", err)
	}
	dir, err := c.get(ctx, "node-"+spec.KubernetesVersion, []string{"image of artefact 1", f.Digest, labnode}, func(dir string, _ *event.Step) error {
		root := filepath.Join(dir, "root")
		for _, argv := range [][]string{
			{"cp", "--archive", "--link", filepath.Join(f.Dir, "root"), root},
			{"rm", filepath.Join(root, "usr/bin/labnode")}, // one name of several for a file of the artefact's
			{"install", "-m", "0755", spec.Labnode, filepath.Join(root, "usr/bin/labnode")},
		} {
			if _, err := command.Run(ctx, argv...); err != nil {
				return err
			}
		}
		list, err := inventory.Read(root)
		if err != nil {
			return err
		}
		if err := os.Remove(filepath.Join(root, inventory.Path)); err != nil {
			return err
		}
		return writeInventory(root, list.Images)
	})
	return At(dir), err
}
