package join

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"k8slab/lab/inventory"
	"k8slab/lab/wait"
)

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
				return "", refuse(fmt.Sprintf("%s cannot be imported from %s: %v", image.Name, inventory.Blobs, err),
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
	stored, err := inventory.OpenImages(m.Root, image)
	if err != nil {
		return err
	}
	archive, into := io.Pipe()
	go func() { _ = into.CloseWithError(stored.Write(into)) }()
	err = m.Feed(ctx, archive, "ctr", "--namespace", "k8s.io", "images", "import", "--local", "--snapshotter", "overlayfs",
		"--label", "io.cri-containerd.pinned=pinned", "-")
	_ = archive.Close() // ends the writer of an import that failed
	return err
}
