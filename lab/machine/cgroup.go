package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8slab/lab/wait"
)

const cgroupRoot = "/sys/fs/cgroup"

// partitionSuffix is what libvirt adds to a partition's name in the cgroup tree.
const partitionSuffix = ".partition"

// hierarchies are the roots of the cgroup trees: one on cgroup v2, one per controller on v1.
func hierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers")); err == nil {
		return []string{cgroupRoot}, nil
	}
	found, err := filepath.Glob(filepath.Join(cgroupRoot, "*", "cgroup.procs"))
	for i := range found {
		found[i] = filepath.Dir(found[i])
	}
	return found, err
}

// delegate enables the controllers for the children of a cgroup v2: a cgroup has only the controllers that its parent enables.
func delegate(dir string, controllers []string) error {
	for _, controller := range controllers {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0o644); err != nil {
			return fmt.Errorf("hand the controller %s on to the children of cgroup %s: %w", controller, dir, err)
		}
	}
	return nil
}

// EnsurePartition makes the cgroup partition for the containers in every hierarchy; libvirt does not make it. On cgroup v2 the partition
// gets the controllers. Its parent must exist and belong to the lab.
func EnsurePartition(path string, controllers []string) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		dir := filepath.Join(root, path+partitionSuffix)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("cgroup partition: %w", err)
		}
		if root == cgroupRoot { // v2; beside v1 it has no controllers
			if err := errors.Join(delegate(filepath.Dir(dir), controllers), delegate(dir, controllers)); err != nil {
				return fmt.Errorf("cgroup partition: %w", err)
			}
		}
		// A new cpuset has no processors and no memory. Until it gets them, no process can join it.
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

// RemovePartition ends what still runs in the partition, and removes it: a container outlives the daemon that started it, and has a network
// namespace of its own, by which it is not found.
func RemovePartition(ctx context.Context, path string) error {
	return wait.For(ctx, "the lab's cgroups to empty", 10*time.Second, 50*time.Millisecond, func(context.Context) error {
		roots, err := hierarchies()
		if err != nil {
			return err
		}
		var errs []error
		for _, root := range roots {
			dir := filepath.Join(root, path+partitionSuffix)
			if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err := killCgroup(dir); err != nil {
				return err
			}
			errs = append(errs, removeCgroup(dir))
		}
		return errors.Join(errs...)
	})
}

// cgroups lists the cgroup and all those below it, parents first.
func cgroups(root string) (dirs []string, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // its last process has just ended
			return nil
		}
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	return dirs, err
}

// containerCgroup finds where on cgroup v1 the freezer has a running container of libvirt's; id is its domain's.
func containerCgroup(id int32) string {
	return filepath.Join(cgroupRoot, "freezer", "*"+partitionSuffix, fmt.Sprintf("lxc-%d-*", id))
}

// thaw resumes frozen processes in the cgroups that match. A runc that is killed while it changes a container leaves it frozen, and on
// cgroup v1 a frozen process does not even die.
func thaw(pattern string) error {
	roots, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	for _, root := range roots {
		dirs, err := cgroups(root)
		if err != nil {
			return err
		}
		for _, dir := range dirs { // before its children: the child of a frozen cgroup stays frozen
			state := filepath.Join(dir, "freezer.state")
			if text, err := os.ReadFile(state); err != nil || strings.TrimSpace(string(text)) == "THAWED" {
				continue
			}
			if err := os.WriteFile(state, []byte("THAWED"), 0o644); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

func killCgroup(root string) error {
	if err := thaw(root); err != nil {
		return err
	}
	dirs, err := cgroups(root)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, text := range strings.Fields(string(procs)) {
			if pid, err := strconv.Atoi(text); err == nil && pid > 0 { // 0: of another pid namespace
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	return nil
}

func removeCgroup(root string) error {
	dirs, err := cgroups(root)
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
