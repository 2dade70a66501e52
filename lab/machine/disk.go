package machine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8slab/lab/command"
)

// makeDisk makes the node's disks. One that is there stays: it may have a member of etcd on it.
func (l *Lab) makeDisk(ctx context.Context, spec Spec) error {
	if !l.container() {
		return l.makeVolumes(ctx, spec)
	}
	if err := os.MkdirAll(l.dir(spec.Node), 0o700); err != nil {
		return err
	}
	path := l.diskPath(spec.Node)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	part := path + ".part" // renamed when whole
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	for _, argv := range [][]string{
		{"install", "-m", "0600", "/dev/null", part}, // the cluster's keys will be in it
		{"truncate", "-s", fmt.Sprintf("%dG", spec.Disk), part},
		{"mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1", "-m", "0", part},
	} {
		if _, err := command.Run(ctx, argv...); err != nil {
			return err
		}
	}
	return os.Rename(part, path)
}

// diskPath is the file with a container's filesystem.
func (l *Lab) diskPath(node string) string { return filepath.Join(l.dir(node), "disk.img") }
