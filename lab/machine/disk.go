package machine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8slab/lab/command"
)

// makeDisk makes the node's disks. An existing disk stays: it may have an etcd member's data.
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

// longestLoop is the longest path that libvirt accepts for the file of a loop device: the field lo_file_name of <linux/loop.h> has no room
// for more. Its error does not say so ("Unable to set backing file …: No such file or directory").
const longestLoop = 63

// loopDir has symbolic links with short names to disks whose own paths are too long.
func (l *Lab) loopDir() string { return "/run/k8slab/lab-" + l.cfg.ID }

// loopPath is the path of a container's disk that libvirt gets.
func (l *Lab) loopPath(node string) string {
	path := l.diskPath(node)
	if len(path) <= longestLoop {
		return path
	}
	return filepath.Join(l.loopDir(), fmt.Sprintf("%x", sha256.Sum256([]byte(node)))[:8])
}

// linkLoop makes the symbolic link to the disk. It is called before each start, because /run is empty after a boot.
func (l *Lab) linkLoop(node string) error {
	path := l.loopPath(node)
	if path == l.diskPath(node) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	err := os.Symlink(l.diskPath(node), path)
	if errors.Is(err, fs.ErrExist) { // of an earlier start, for the same disk
		return nil
	}
	return err
}
