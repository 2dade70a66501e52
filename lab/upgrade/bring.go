package upgrade

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/image"
	"k8slab/lab/inventory"
	"k8slab/lab/provision"
	"k8slab/lab/repair"
	"k8slab/lab/session"
)

// bring gives all nodes the container images of the version, and the programs but kubelet. Nothing that runs uses them yet.
func (u *upgrade) bring(ctx context.Context) error {
	if err := u.images(ctx); err != nil {
		return err
	}
	return session.ForEachNode(u.Cluster.Members(), func(n config.Node) error {
		return u.step(stepPrograms+n.Name, func() error {
			step := u.Events.Start(n.Name, "programs", programsBudget)
			return step.End(u.programs(ctx, n, false))
		})
	})
}

// images loads into all nodes the container images that one of them lacks, or has something else under the name of. It looks again each time,
// because what a node had when the upgrade began may be gone.
func (u *upgrade) images(ctx context.Context) error {
	has, err := session.FromEachNode(u.Cluster.Members(), func(n config.Node) (map[string]string, error) { return provision.ImagesOn(ctx, u.Session, n.Name) })
	if err != nil {
		return err
	}
	lacking := slices.DeleteFunc(slices.Clone(u.release.Images), func(name string) bool {
		return !slices.ContainsFunc(has, func(on map[string]string) bool { return on[name] != u.release.Digest(name) })
	})
	if len(lacking) == 0 {
		return nil
	}
	file, err := os.CreateTemp(u.Path(), "upgrade-*.tar")
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := os.Remove(file.Name()); err != nil { // it goes when it is closed
		return err
	}
	if err := u.release.WriteImages(file, lacking); err != nil {
		return err
	}
	archive, err := image.OpenArchiveFile(file)
	if err != nil {
		return err
	}
	_, err = provision.LoadImages(ctx, u.Session, archive, nil)
	return err
}

// programsBudget bounds the copying of programs to one node.
const programsBudget = 5 * time.Minute

// programs replaces the node's programs by the release's. What it had is kept beside each, as with every file that is put back.
func (u *upgrade) programs(ctx context.Context, n config.Node, kubelet bool) error {
	ctx, cancel := u.Within(ctx, programsBudget)
	defer cancel()
	on := u.Nodes[n.Name]
	text, err := on.Read(ctx, "cat", inventory.Path)
	if err != nil {
		return fmt.Errorf("read what its image has: %w", err)
	}
	list, err := inventory.Parse([]byte(text))
	if err != nil {
		return err
	}
	list, paths := u.release.Onto(list, kubelet)
	now, err := json.Marshal(list)
	if err != nil {
		return err
	}
	if err := on.Copy(ctx, inventory.Path, 0o644, strings.NewReader(string(now))); err != nil {
		return err
	}
	return repair.PutBack(ctx, on, paths)
}
