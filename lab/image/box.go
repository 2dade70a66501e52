package image

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"k8slab/lab/command"
	"k8slab/lab/event"
)

// Box is the image's form for vagrant with its libvirt provider.
type Box struct {
	Name    string `json:"name"` // another one for each image, so that vagrant never takes an old one
	Version string `json:"version"`
	URL     string `json:"url"` // of the catalog by which vagrant finds the box
}

// Dir is where in the cache the box is.
func (b Box) Dir() string { return filepath.Dir(strings.TrimPrefix(b.URL, "file://")) }

// BuildBox returns the box, after making it from the disk if the cache does not have it. Version is that of Kubernetes in the image.
func (i Image) BuildBox(ctx context.Context, disk Disk, version string, events *event.Stream) (Box, error) {
	c := cache{dir: filepath.Dir(i.Dir), events: events}
	box := Box{Name: "k8slab/" + i.Hash, Version: strings.TrimPrefix(version, "v")}
	inputs := []string{"box 1", filepath.Base(filepath.Dir(disk.Base)), box.Name, box.Version}
	path := c.path("box", inputs)
	box.URL = "file://" + filepath.Join(path, "catalog.json")
	_, err := c.get(ctx, "box", inputs, func(dir string, step *event.Step) error {
		step.Progress("packing the disk")
		return makeBox(ctx, box, disk.Base, dir, path)
	})
	return box, err
}

// makeBox makes in dir what will be at path.
func makeBox(ctx context.Context, box Box, disk, dir, path string) error {
	text, err := command.Run(ctx, "qemu-img", "info", "--output=json", disk)
	if err != nil {
		return err
	}
	var info struct {
		Size int64 `json:"virtual-size"`
	}
	if err := json.Unmarshal([]byte(text), &info); err != nil {
		return err
	}
	const gib = 1 << 30
	archive := map[string]any{"provider": "libvirt", "format": "qcow2", "virtual_size": (info.Size + gib - 1) / gib}
	catalog := map[string]any{"name": box.Name, "versions": []any{map[string]any{
		"version": box.Version, "providers": []any{map[string]string{"name": "libvirt", "url": "file://" + filepath.Join(path, "node.box")}},
	}}}
	for name, v := range map[string]any{"metadata.json": archive, "catalog.json": catalog} {
		data, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	link := filepath.Join(dir, "box.img")
	if err := os.Symlink(disk, link); err != nil { // no hard link: the disk may be root's, in a cache that root filled for a user
		return err
	}
	// Not compressed: it never travels.
	if _, err := command.Run(ctx, "tar", "-C", dir, "--dereference", "-cf", filepath.Join(dir, "node.box"), "metadata.json", "box.img"); err != nil {
		return err
	}
	return os.Remove(link)
}
