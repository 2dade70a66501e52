package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8slab/lab/wait"
)

const cgroupRoot = "/sys/fs/cgroup"

// partitionSuffix is what libvirt adds to a partition's name in the cgroup tree.
const partitionSuffix = ".partition"

// EnsurePartition makes the containers' cgroup partition, which libvirt expects to be there, in every v1 hierarchy.
func EnsurePartition(name string) error {
	hierarchies, err := filepath.Glob(cgroupRoot + "/*/cgroup.procs")
	if err != nil {
		return err
	}
	for _, h := range hierarchies {
		root := filepath.Dir(h)
		dir := filepath.Join(root, name+partitionSuffix)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("cgroup partition: %w", err)
		}
		// A new cpuset has no processors or memory, and takes no process before it has.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			value, err := os.ReadFile(filepath.Join(root, file))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, file), value, 0o644)
			}
			if err != nil {
				return fmt.Errorf("cgroup partition: %w", err)
			}
		}
	}
	return nil
}

// RemovePartition removes the partition and what machines left in it. Their processes must have ended.
func RemovePartition(ctx context.Context, name string) error {
	return wait.For(ctx, "the lab's cgroups to empty", 10*time.Second, 50*time.Millisecond, func(context.Context) error {
		partitions, err := filepath.Glob(filepath.Join(cgroupRoot, "*", name+partitionSuffix))
		if err != nil {
			return err
		}
		var errs []error
		for _, p := range partitions {
			errs = append(errs, removeCgroup(p))
		}
		return errors.Join(errs...)
	})
}

func removeCgroup(root string) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, dir := range slices.Backward(dirs) { // children first
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
