package image

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	parts "github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// archiveEnding is what follows a program's name in the name of its image archive.
const archiveEnding = ".tar"

// archiveProblem says why the archive cannot replace the container image ref, nil if it can. Upstream's archives have the architecture in
// the image's name: kube-proxy-amd64. An empty ref accepts any image.
func archiveProblem(file, ref string) error {
	img, names, err := readArchive(file)
	if err != nil {
		return fmt.Errorf("is not a usable image archive: %w", bare(err))
	}
	config, err := img.ConfigFile()
	if err != nil {
		return fmt.Errorf("is not a usable image archive: %w", err)
	}
	if config.OS != "linux" || config.Architecture != "amd64" {
		return fmt.Errorf("is an image for %s/%s; take the one for linux/amd64", config.OS, config.Architecture)
	}
	if ref == "" || slices.Contains(names, ref) || slices.Contains(names, forAMD64(ref)) {
		return nil
	}
	return fmt.Errorf("has the image %q, and kubeadm asks for %s; take the archive of that release", strings.Join(names, ", "), ref)
}

func forAMD64(ref string) string {
	tag := strings.LastIndex(ref, ":")
	return ref[:tag] + "-amd64" + ref[tag:]
}

// readArchive opens a docker or an OCI archive with one image, compressed by gzip or not, and returns the image's names. Layers are read
// from the file only when they are needed.
func readArchive(file string) (v1.Image, []string, error) {
	open := func() (io.ReadCloser, error) { return openTar(file) }
	var manifest tarball.Manifest
	err := readJSON(open, "manifest.json", &manifest)
	if errors.Is(err, errNoEntry) {
		return readOCI(open)
	}
	if err != nil {
		return nil, nil, err
	}
	if len(manifest) != 1 {
		return nil, nil, fmt.Errorf("it has %d images; make an archive of each", len(manifest))
	}
	img, err := tarball.Image(open, nil)
	return img, manifest[0].RepoTags, err
}

// readOCI reads the only image of an OCI layout, or its only one for linux/amd64.
func readOCI(open tarball.Opener) (v1.Image, []string, error) {
	var index v1.IndexManifest
	if err := readJSON(open, "index.json", &index); err != nil {
		return nil, nil, fmt.Errorf("no manifest.json and no usable index.json: %w", err)
	}
	if len(index.Manifests) != 1 {
		return nil, nil, fmt.Errorf("it has %d images; make an archive of each", len(index.Manifests))
	}
	desc := index.Manifests[0]
	var names []string
	for _, key := range []string{"io.containerd.image.name", "org.opencontainers.image.ref.name"} {
		if name := desc.Annotations[key]; name != "" {
			names = append(names, name)
		}
	}
	if desc.MediaType.IsIndex() {
		var platforms v1.IndexManifest
		if err := readJSON(open, blobPath(desc.Digest), &platforms); err != nil {
			return nil, nil, err
		}
		i := slices.IndexFunc(platforms.Manifests, func(d v1.Descriptor) bool {
			return d.Platform != nil && d.Platform.OS == "linux" && d.Platform.Architecture == "amd64"
		})
		if i < 0 {
			return nil, nil, errors.New("it has no image for linux/amd64")
		}
		desc = platforms.Manifests[i]
	}
	img := &ociImage{open: open, mediaType: desc.MediaType}
	var err error
	if img.raw, err = readBlob(open, desc.Digest); err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(img.raw, &img.manifest); err != nil {
		return nil, nil, err
	}
	if img.config, err = readBlob(open, img.manifest.Config.Digest); err != nil {
		return nil, nil, err
	}
	whole, err := parts.CompressedToImage(img)
	return whole, names, err
}

// ociImage is an image in an OCI layout that is in an archive.
type ociImage struct {
	open        tarball.Opener
	mediaType   types.MediaType
	raw, config []byte
	manifest    v1.Manifest
}

func (i *ociImage) MediaType() (types.MediaType, error) { return i.mediaType, nil }
func (i *ociImage) RawManifest() ([]byte, error)        { return i.raw, nil }
func (i *ociImage) RawConfigFile() ([]byte, error)      { return i.config, nil }

func (i *ociImage) LayerByDigest(h v1.Hash) (parts.CompressedLayer, error) {
	for _, desc := range i.manifest.Layers {
		if desc.Digest == h {
			return ociLayer{i.open, desc}, nil
		}
	}
	return nil, fmt.Errorf("the image has no layer %s", h)
}

type ociLayer struct {
	open tarball.Opener
	desc v1.Descriptor
}

func (l ociLayer) Digest() (v1.Hash, error)            { return l.desc.Digest, nil }
func (l ociLayer) Size() (int64, error)                { return l.desc.Size, nil }
func (l ociLayer) MediaType() (types.MediaType, error) { return l.desc.MediaType, nil }
func (l ociLayer) Compressed() (io.ReadCloser, error) {
	return openEntry(l.open, blobPath(l.desc.Digest))
}
func (l ociLayer) Descriptor() (*v1.Descriptor, error) { return &l.desc, nil }

func blobPath(h v1.Hash) string { return path.Join("blobs", h.Algorithm, h.Hex) }

// maxJSON bounds what is read into memory, in bytes; manifests and configurations have some thousands.
const maxJSON = 4 << 20

func readBlob(open tarball.Opener, want v1.Hash) ([]byte, error) {
	data, err := readEntry(open, blobPath(want))
	if err != nil {
		return nil, err
	}
	if got, _, err := v1.SHA256(bytes.NewReader(data)); err != nil || got != want {
		return nil, errors.Join(err, fmt.Errorf("%s has another content", blobPath(want)))
	}
	return data, nil
}

func readJSON(open tarball.Opener, name string, v any) error {
	data, err := readEntry(open, name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func readEntry(open tarball.Opener, name string) ([]byte, error) {
	f, err := openEntry(open, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxJSON))
}

var errNoEntry = errors.New("it is not in the archive")

func openEntry(open tarball.Opener, name string) (io.ReadCloser, error) {
	f, err := open()
	if err != nil {
		return nil, err
	}
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			err = errNoEntry
		}
		if err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if path.Clean(h.Name) == name {
			return readCloser{r, f}, nil
		}
	}
}

type readCloser struct {
	io.Reader
	io.Closer
}

// openTar opens the archive, uncompressed. A plain file stays seekable, because readers skip layers.
func openTar(file string) (io.ReadCloser, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	b := bufio.NewReader(f)
	if magic, _ := b.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		_, err := f.Seek(0, io.SeekStart)
		return f, err
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return readCloser{z, f}, nil
}

// bare is a file's error without its path, for messages that have the path already.
func bare(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
