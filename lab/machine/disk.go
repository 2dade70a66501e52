package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8slab/lab/command"
)

// makeDisk makes the node's empty disk: a filesystem in a sparse file for a container, an overlay on the image for a virtual machine. It
// is renamed when whole. One that is there stays: it may have a member of etcd on it.
func (l *Lab) makeDisk(ctx context.Context, spec Spec) error {
	if err := os.MkdirAll(l.dir(spec.Node), 0o700); err != nil {
		return err
	}
	path := l.diskPath(spec.Node)
	part := path + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	size := fmt.Sprintf("%dG", spec.Disk)
	steps := [][]string{
		{"install", "-m", "0600", "/dev/null", part}, // the cluster's keys will be in it
		{"truncate", "-s", size, part},
		{"mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1", "-m", "0", part},
	}
	if !l.container() {
		steps = [][]string{
			{"qemu-img", "create", "-q", "-f", "qcow2", "-b", spec.Boot.Base, "-F", "qcow2", part, size},
			{"chmod", "0600", part},
		}
		if err := l.makeBootSeed(ctx, spec); err != nil {
			return err
		}
	}
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	for _, argv := range steps {
		if _, err := command.Run(ctx, argv...); err != nil {
			return err
		}
	}
	return os.Rename(part, path)
}

// makeBootSeed makes the second disk of a virtual machine.
func (l *Lab) makeBootSeed(ctx context.Context, spec Spec) error {
	if !spec.Boot.stock() {
		return l.makeSeed(ctx, spec.Node, spec.Seed)
	}
	path := l.noCloudPath(spec.Node)
	part := path + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	if err := writeNoCloud(part, spec.Seed); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// makeSeed makes the disk from which a virtual machine reads its own files: an archive of the directory.
func (l *Lab) makeSeed(ctx context.Context, node, dir string) error {
	if err := os.MkdirAll(l.dir(node), 0o700); err != nil {
		return err
	}
	part := l.seedPath(node) + ".part"
	for _, argv := range [][]string{
		{"install", "-m", "0600", "/dev/null", part},
		{"tar", "-C", dir, "--owner=0", "--group=0", "--blocking-factor=2048", "-cf", part, "."},
	} {
		if _, err := command.Run(ctx, argv...); err != nil {
			return err
		}
	}
	return os.Rename(part, l.seedPath(node))
}

// DeleteAllDisks removes the disks of every node, of absent machines too.
func (l *Lab) DeleteAllDisks() error {
	err := os.RemoveAll(l.loopDir())
	_ = os.Remove(filepath.Dir(l.loopDir())) // unless another lab has names there
	return errors.Join(err, os.RemoveAll(filepath.Clean(l.cfg.Dir)))
}
