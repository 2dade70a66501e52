package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Archive is an archive of container images, of docker or OCI, compressed by gzip or not.
type Archive struct {
	Names []string // the images in it, each in full
	// Renamed maps names that containerd would keep unchanged to the names that kubelet looks for.
	Renamed map[string]string
	Size    int64 // as it is stored

	content io.ReaderAt
}

// OpenArchive reads the list of images in an archive of that size. It refuses images that a node could not run, or that have no name.
func OpenArchive(content io.ReaderAt, size int64) (*Archive, error) {
	a := &Archive{Size: size, content: content, Renamed: map[string]string{}}
	found, err := a.named()
	if err != nil {
		return nil, err
	}
	for _, given := range found {
		tag, err := name.NewTag(given)
		if err != nil {
			return nil, fmt.Errorf("it has an image with the name %q, which kubelet cannot look for; save it as NAME:TAG", given)
		}
		full := fullName(tag)
		if !slices.Contains(a.Names, full) {
			a.Names = append(a.Names, full)
		}
		if full != given {
			a.Renamed[given] = full
		}
	}
	return a, nil
}

// OpenArchiveFile is OpenArchive for a file, which has to stay open.
func OpenArchiveFile(f *os.File) (*Archive, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return OpenArchive(f, info.Size())
}

// fullName is the name as containerd and kubelet write it.
func fullName(tag name.Tag) string {
	registry := tag.RegistryStr()
	if registry == name.DefaultRegistry {
		registry = "docker.io"
	}
	return registry + "/" + tag.RepositoryStr() + ":" + tag.TagStr()
}

// Open gives the archive from its beginning, uncompressed. Several can read at once.
func (a *Archive) Open() (io.ReadCloser, error) {
	plain := io.NewSectionReader(a.content, 0, a.Size)
	magic := make([]byte, 2)
	if _, err := plain.ReadAt(magic, 0); err != nil || !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return io.NopCloser(plain), nil
	}
	return gzip.NewReader(plain)
}

// Copy writes the archive as it is stored.
func (a *Archive) Copy(to io.Writer) error {
	_, err := io.Copy(to, io.NewSectionReader(a.content, 0, a.Size))
	return err
}

// named are the names that the archive gives its images. Each image must be for the nodes' architecture.
func (a *Archive) named() ([]string, error) {
	var manifest tarball.Manifest
	switch err := readJSON(a.Open, "manifest.json", &manifest); {
	case errors.Is(err, errNoEntry):
		return a.namedOCI()
	case errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrHeader):
		return nil, errors.New("it is not a tar archive, or only a part of one")
	case err != nil:
		return nil, err
	}
	var names []string
	for _, m := range manifest {
		if len(m.RepoTags) == 0 {
			return nil, errNoName
		}
		var config v1.ConfigFile
		if err := readJSON(a.Open, m.Config, &config); err != nil {
			return nil, err
		}
		if err := runsHere(m.RepoTags[0], config.OS, config.Architecture); err != nil {
			return nil, err
		}
		names = append(names, m.RepoTags...)
	}
	return names, nil
}

var errNoName = errors.New("it has an image without a name; save it by its name, as NAME:TAG, not by its ID")

func (a *Archive) namedOCI() ([]string, error) {
	var index v1.IndexManifest
	if err := readJSON(a.Open, "index.json", &index); err != nil {
		return nil, fmt.Errorf("it is not an image archive of docker or OCI: no manifest.json, and %w", err)
	}
	var names []string
	for _, desc := range index.Manifests {
		given := desc.Annotations["io.containerd.image.name"]
		if given == "" {
			if given = desc.Annotations["org.opencontainers.image.ref.name"]; !strings.ContainsAny(given, "/:") { // a tag alone
				return nil, errNoName
			}
		}
		img, err := a.imageOf(desc)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", given, err)
		}
		var config v1.ConfigFile
		if err := readJSON(a.Open, blobPath(img.Config.Digest), &config); err != nil {
			return nil, err
		}
		if err := runsHere(given, config.OS, config.Architecture); err != nil {
			return nil, err
		}
		names = append(names, given)
	}
	if len(names) == 0 {
		return nil, errors.New("it has no image")
	}
	return names, nil
}

// imageOf is the manifest of an image: of one for several platforms, the nodes'.
func (a *Archive) imageOf(desc v1.Descriptor) (m v1.Manifest, err error) {
	if desc.MediaType.IsIndex() {
		var platforms v1.IndexManifest
		if err := readJSON(a.Open, blobPath(desc.Digest), &platforms); err != nil {
			return m, err
		}
		i := slices.IndexFunc(platforms.Manifests, func(d v1.Descriptor) bool {
			return d.Platform != nil && d.Platform.OS == "linux" && d.Platform.Architecture == "amd64"
		})
		if i < 0 {
			return m, errors.New("it has no image for linux/amd64")
		}
		desc = platforms.Manifests[i]
	}
	return m, readJSON(a.Open, blobPath(desc.Digest), &m)
}

func runsHere(image, system, architecture string) error {
	if system != "linux" || architecture != "amd64" {
		return fmt.Errorf("%s is an image for %s/%s; nodes run those for linux/amd64", image, system, architecture)
	}
	return nil
}
