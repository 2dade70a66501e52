package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8slab/lab/command"
	"k8slab/lab/wait"
)

// A computer's systemd has the cgroups of everything that it does not know in order: at each daemon-reload, which every installation of a package
// makes, it may take controllers from them (systemd.io/CGROUP_DELEGATION). So what belongs to a lab is in a scope that systemd made and leaves
// alone. A scope lives as long as a process in it, however the one that asked for it ended.
const (
	cgroupRoot  = "/sys/fs/cgroup"
	scopeSlice  = "machine.slice"
	scopeSuffix = ".scope"
	servingLeaf = "serve" // where the serving processes are: a cgroup with children that are limited has no processes itself
)

// Scope is the path in the cgroup tree of the lab's scope, "" where systemd has no cgroups in order: it does not run, or there is no cgroup v2.
func Scope(name string) string { return scope("/", name) }

func scope(root, name string) string {
	if !exists(filepath.Join(root, "run/systemd/system")) || cgroups(root) != "v2" {
		return ""
	}
	return "/" + scopeSlice + "/" + name + scopeSuffix
}

// inScope makes of argv what runs in the lab's scope, where that is not there yet; path is "" or Scope's. At a shutdown everything in it is asked to
// end, and soon made to: a container's own systemd takes such a request for something else.
func inScope(argv []string, path string) []string {
	if path == "" || exists(cgroupRoot+path) {
		return argv
	}
	return append([]string{
		"systemd-run", "--quiet", "--scope", "--collect", "--slice=" + scopeSlice, "--unit=" + filepath.Base(path),
		"--property=Delegate=yes", "--property=TimeoutStopSec=20s", "--description=k8slab: a lab's libvirt daemon and its machines", "--",
	}, argv...)
}

// ScopeEnds waits until systemd has seen that nothing runs in the scope any more, for no other of its name can begin until then, and removes the cgroup
// if systemd has left it.
func ScopeEnds(ctx context.Context, path string) error {
	if path == "" {
		return nil
	}
	dir := cgroupRoot + path
	return wait.For(ctx, "systemd to end "+filepath.Base(path), 30*time.Second, 20*time.Millisecond, func(ctx context.Context) error {
		if !exists(dir) {
			return nil
		}
		if programs := programsIn(dir); len(programs) > 0 {
			return fmt.Errorf("it has %s", strings.Join(programs, ", "))
		}
		if _, err := command.Run(ctx, "systemctl", "is-active", "--quiet", filepath.Base(path)); err == nil {
			return errors.New("it is active, without a process")
		}
		return errors.Join(os.RemoveAll(filepath.Join(dir, servingLeaf)), os.RemoveAll(dir))
	})
}

// programsIn names what runs in a cgroup and in those below it.
func programsIn(cgroup string) (programs []string) {
	_ = filepath.WalkDir(cgroup, func(path string, _ fs.DirEntry, _ error) error {
		pids, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		for pid := range strings.FieldsSeq(string(pids)) {
			name, _ := os.ReadFile(filepath.Join("/proc", pid, "comm"))
			programs = append(programs, fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), pid))
		}
		return nil
	})
	return programs
}

// joinLeaf opens the leaf of a scope that is there, for a process to start in; nil where there is none.
func joinLeaf(path string) (*os.File, error) {
	if path == "" || !exists(cgroupRoot+path) {
		return nil, nil
	}
	leaf := filepath.Join(cgroupRoot, path, servingLeaf)
	if err := os.MkdirAll(leaf, 0o755); err != nil {
		return nil, err
	}
	return os.Open(leaf)
}

// enterLeaf moves this process out of the way of the machines, if it was started by systemd-run.
func enterLeaf() error {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return err
	}
	path, unified := strings.CutPrefix(strings.TrimSpace(string(text)), "0::") // the only line where there is cgroup v2 alone
	if !unified || !strings.HasPrefix(path, "/"+scopeSlice+"/") || !strings.HasSuffix(path, scopeSuffix) {
		return nil
	}
	leaf := filepath.Join(cgroupRoot, path, servingLeaf)
	if err := os.MkdirAll(leaf, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(leaf, "cgroup.procs"), fmt.Append(nil, os.Getpid()), 0o644)
}
