package inventory

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Blobs is where an image keeps the contents of the container images that it brings. containerd's own store has links to them, which go when
// a container image is removed; these files stay.
const Blobs = "/usr/share/k8slab/containerd/blobs"

// Images are container images whose contents are all in the tree of an image, or of its node.
type Images struct {
	root  string
	index []descriptor // their manifests
	blobs []string     // the digests of all that they consist of, each once
}

// descriptor is what an image's manifest says of a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// OpenImages finds the contents of container images in the tree at root. The error wraps os.ErrNotExist where one lacks a part.
func OpenImages(root string, images ...Image) (*Images, error) {
	all := &Images{root: root}
	for _, image := range images {
		size, err := all.add(image.Digest)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", image.Name, err)
		}
		all.index = append(all.index, descriptor{MediaType: image.MediaType, Digest: image.Digest, Size: size,
			Annotations: map[string]string{"io.containerd.image.name": image.Name}})
	}
	return all, nil
}

// add finds the blobs of the image with the manifest, and returns the manifest's size.
func (i *Images) add(digest string) (int64, error) {
	file, err := i.file(digest)
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	var manifest struct {
		Config *descriptor  `json:"config"`
		Layers []descriptor `json:"layers"`
	}
	if err := json.Unmarshal(text, &manifest); err != nil || manifest.Config == nil {
		return 0, errors.Join(fmt.Errorf("%s is not the manifest of an image", file), err)
	}
	for _, blob := range append(manifest.Layers, descriptor{Digest: digest}, *manifest.Config) {
		file, err := i.file(blob.Digest)
		if err == nil {
			_, err = os.Stat(file)
		}
		if err != nil {
			return 0, err
		}
		if !slices.Contains(i.blobs, blob.Digest) {
			i.blobs = append(i.blobs, blob.Digest)
		}
	}
	return int64(len(text)), nil
}

var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

func (i *Images) file(digest string) (string, error) {
	if !digestForm.MatchString(digest) {
		return "", fmt.Errorf("%q is not sha256: and 64 hexadecimal digits", digest)
	}
	return filepath.Join(i.root, Blobs, strings.TrimPrefix(digest, "sha256:")), nil
}

// Write writes an archive of the images, in the OCI image layout (github.com/opencontainers/image-spec, image-layout.md).
func (i *Images) Write(to io.Writer) error {
	archive := tar.NewWriter(to)
	for _, digest := range i.blobs {
		if err := i.writeBlob(archive, digest); err != nil {
			return err
		}
	}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": i.index})
	if err != nil {
		return err
	}
	layout := `{"imageLayoutVersion":"1.0.0"}`
	return errors.Join(entry(archive, "index.json", int64(len(index)), strings.NewReader(string(index))),
		entry(archive, "oci-layout", int64(len(layout)), strings.NewReader(layout)), archive.Close())
}

func (i *Images) writeBlob(archive *tar.Writer, digest string) error {
	name, err := i.file(digest)
	if err != nil {
		return err
	}
	blob, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = blob.Close() }()
	info, err := blob.Stat()
	if err != nil {
		return err
	}
	return entry(archive, "blobs/sha256/"+filepath.Base(name), info.Size(), blob)
}

func entry(archive *tar.Writer, name string, size int64, content io.Reader) error {
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size}); err != nil {
		return err
	}
	_, err := io.Copy(archive, content)
	return err
}
