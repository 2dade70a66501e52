package machine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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
	for i, size := range spec.Disks {
		if err := makeEmpty(ctx, l.extraPath(spec.Node, i), size); err != nil {
			return err
		}
	}
	path := l.diskPath(spec.Node)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	part := path + ".part" // renamed when whole
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	if err := makeEmpty(ctx, part, spec.Disk); err != nil {
		return err
	}
	_, err := command.Run(ctx, "mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1", "-m", "0", part)
	if err != nil {
		return err
	}
	return os.Rename(part, path)
}

// makeEmpty makes a file for a disk of that many GiB, which takes space as it fills. An existing one stays.
func makeEmpty(ctx context.Context, path string, size int) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if _, err := command.Run(ctx, "install", "-m", "0600", "/dev/null", path); err != nil { // the cluster's keys may be in it
			return err
		}
	}
	_, err := command.Run(ctx, "truncate", "-s", fmt.Sprintf("%dG", size), path)
	return err
}

// diskPath is the file with a container's filesystem.
func (l *Lab) diskPath(node string) string { return filepath.Join(l.dir(node), "disk.img") }

// longestLoop is the longest path that libvirt accepts for the file of a loop device: the field lo_file_name of <linux/loop.h> has no room
// for more. Its error does not say so ("Unable to set backing file …: No such file or directory").
const longestLoop = 63

// loopDir has symbolic links with short names to disks whose own paths are too long.
func (l *Lab) loopDir() string { return "/run/k8slab/lab-" + l.cfg.ID }

// extraPath is the file of one of a container's empty disks.
func (l *Lab) extraPath(node string, i int) string {
	return filepath.Join(l.dir(node), fmt.Sprintf("disk%d.img", i))
}

// loopPath is the path of a container's disk that libvirt gets.
func (l *Lab) loopPath(node string) string { return l.shortPath(l.diskPath(node), node) }

// extraLoop is loopPath for one of its empty disks.
func (l *Lab) extraLoop(node string, i int) string {
	return l.shortPath(l.extraPath(node, i), fmt.Sprintf("%s/%d", node, i))
}

// shortPath is the path of the file, or of a symbolic link to it that is named after the disk.
func (l *Lab) shortPath(path, disk string) string {
	if len(path) <= longestLoop {
		return path
	}
	return filepath.Join(l.loopDir(), fmt.Sprintf("%x", sha256.Sum256([]byte(disk)))[:8])
}

// loops are the node's disks by the paths that libvirt gets, where those are links.
func (l *Lab) loops(node string) map[string]string {
	links := map[string]string{l.loopPath(node): l.diskPath(node)}
	for i := 0; ; i++ {
		if _, err := os.Stat(l.extraPath(node, i)); err != nil {
			break
		}
		links[l.extraLoop(node, i)] = l.extraPath(node, i)
	}
	maps.DeleteFunc(links, func(link, file string) bool { return link == file })
	return links
}

// linkLoops makes the symbolic links to the disks. It is called before each start, because /run is empty after a boot.
func (l *Lab) linkLoops(node string) error {
	for link, file := range l.loops(node) {
		if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
			return err
		}
		if err := os.Symlink(file, link); err != nil && !errors.Is(err, fs.ErrExist) { // of an earlier start, for the same disk
			return err
		}
	}
	return nil
}
