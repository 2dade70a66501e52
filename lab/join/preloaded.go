package join

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"k8slab/lab/inventory"
	"k8slab/lab/wait"
)

// blobStore is where the node image keeps the contents of the container images that it brings. containerd's own store has links to them,
// which go when an image is removed; these files stay.
const blobStore = "/usr/share/k8slab/containerd/blobs"

// lostImages are the container images that the machine's image brought and its containerd no longer has.
func (m Machine) lostImages(has []string) ([]inventory.Image, error) {
	list, err := inventory.Read(m.Root)
	return slices.DeleteFunc(list.Images, func(i inventory.Image) bool { return slices.Contains(has, i.Name) }), err
}

func imageNames(images []inventory.Image) string {
	names := make([]string, len(images))
	for i, image := range images {
		names[i] = image.Name
	}
	return strings.Join(names, ", ")
}

// importLimit is how long containerd's CRI may take to see what was imported. Usually it takes milliseconds.
const importLimit = 10 * time.Second

// repairImages imports the lost images from the node image's own blobs. They are pinned, so that kubelet's garbage collection leaves them.
func repairImages(ctx context.Context, p *preflight) (string, error) {
	facts, err := p.cri(ctx)
	if err == nil {
		err = facts.imagesErr
	}
	if err != nil {
		return "", err
	}
	lost, err := p.m.lostImages(facts.images)
	if err != nil {
		return "", err
	}
	if len(lost) == 0 {
		return "", refuse("no image of the node image is lost", "ctr -n k8s.io images import FILE")
	}
	for _, image := range lost {
		if err := p.m.importImage(ctx, image); err != nil {
			if errors.Is(err, os.ErrNotExist) {
				return "", refuse(fmt.Sprintf("%s cannot be imported from %s: %v", image.Name, blobStore, err),
					"labctl repair, which puts the files there back")
			}
			return "", fmt.Errorf("import %s: %w", image.Name, err)
		}
	}
	err = wait.For(ctx, "containerd to show the images", importLimit, 100*time.Millisecond, func(ctx context.Context) error {
		now, err := p.m.talkCRI(ctx, facts.socket)
		if err != nil {
			return err
		}
		if still, err := p.m.lostImages(now.images); err != nil || len(still) > 0 {
			return errors.Join(err, fmt.Errorf("it does not show %s", imageNames(still)))
		}
		return nil
	})
	return "imported " + imageNames(lost) + " from the node's own copy, and pinned them", err
}

// importImage streams the image into containerd: a copy on the disk might not have room there.
func (m Machine) importImage(ctx context.Context, image inventory.Image) error {
	blobs, err := m.blobsOf(image.Digest)
	if err != nil {
		return err
	}
	archive, into := io.Pipe()
	go func() { _ = into.CloseWithError(m.writeImage(into, image, blobs)) }()
	err = m.Feed(ctx, archive, "ctr", "--namespace", "k8s.io", "images", "import", "--local", "--snapshotter", "overlayfs",
		"--label", "io.cri-containerd.pinned=pinned", "-")
	_ = archive.Close() // ends the writer of an import that failed
	return err
}

// descriptor is what an image's manifest says of a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// blobsOf are the digests of all the blobs of an image, the manifest first.
func (m Machine) blobsOf(digest string) ([]string, error) {
	file, err := blobFile(digest)
	if err != nil {
		return nil, err
	}
	text, err := m.Read(file)
	if err != nil {
		return nil, err
	}
	var manifest struct {
		Config *descriptor  `json:"config"`
		Layers []descriptor `json:"layers"`
	}
	if err := json.Unmarshal([]byte(text), &manifest); err != nil || manifest.Config == nil {
		return nil, errors.Join(fmt.Errorf("%s is not the manifest of an image", file), err)
	}
	all := []string{digest, manifest.Config.Digest}
	for _, layer := range manifest.Layers {
		if !slices.Contains(all, layer.Digest) {
			all = append(all, layer.Digest)
		}
	}
	for _, d := range all {
		file, err := blobFile(d)
		if err != nil {
			return nil, err
		}
		if !m.Exists(file) {
			return nil, &os.PathError{Op: "open", Path: file, Err: os.ErrNotExist}
		}
	}
	return all, nil
}

func blobFile(digest string) (string, error) {
	if !hashForm.MatchString(digest) {
		return "", fmt.Errorf("%q is not sha256: and 64 hexadecimal digits", digest)
	}
	return path.Join(blobStore, strings.TrimPrefix(digest, "sha256:")), nil
}

// writeImage writes the archive of an image, in the OCI image layout (github.com/opencontainers/image-spec, image-layout.md).
func (m Machine) writeImage(to io.Writer, image inventory.Image, blobs []string) error {
	archive := tar.NewWriter(to)
	add := func(name string, size int64, content io.Reader) error {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size}); err != nil {
			return err
		}
		_, err := io.Copy(archive, content)
		return err
	}
	root := descriptor{MediaType: image.MediaType, Digest: image.Digest,
		Annotations: map[string]string{"io.containerd.image.name": image.Name}}
	for _, digest := range blobs {
		name, err := blobFile(digest)
		if err != nil {
			return err
		}
		blob, err := os.Open(m.Path(name))
		if err != nil {
			return err
		}
		info, err := blob.Stat()
		if err == nil {
			err = add("blobs/sha256/"+path.Base(name), info.Size(), blob)
		}
		_ = blob.Close()
		if err != nil {
			return err
		}
		if digest == image.Digest {
			root.Size = info.Size()
		}
	}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []descriptor{root}})
	if err != nil {
		return err
	}
	layout := `{"imageLayoutVersion":"1.0.0"}`
	return errors.Join(add("index.json", int64(len(index)), strings.NewReader(string(index))),
		add("oci-layout", int64(len(layout)), strings.NewReader(layout)), archive.Close())
}
