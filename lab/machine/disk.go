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
// is renamed when whole, and made anew only for a machine that is absent.
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
			// A virtual machine reads its own files from a disk that is this archive.
			{"tar", "-C", spec.Seed, "--owner=0", "--group=0", "--blocking-factor=2048", "-cf", l.seedPath(spec.Node), "."},
			{"chmod", "0600", l.seedPath(spec.Node)},
		}
	}
	for _, argv := range steps {
		if _, err := command.Run(ctx, argv...); err != nil {
			return err
		}
	}
	return os.Rename(part, path)
}

// DeleteAllDisks removes the disks of every node, of absent machines too.
func (l *Lab) DeleteAllDisks() error {
	err := os.RemoveAll(l.loopDir())
	_ = os.Remove(filepath.Dir(l.loopDir())) // unless another lab has names there
	return errors.Join(err, os.RemoveAll(filepath.Clean(l.cfg.Dir)))
}
