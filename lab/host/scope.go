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

// systemd manages every cgroup that it was not told to leave alone: at each daemon-reload, which every installation of a package triggers,
// it may remove controllers from them (systemd.io/CGROUP_DELEGATION). So a lab's processes are in a scope that systemd made with Delegate.
// A scope lives as long as a process in it, even if the one that asked for it ended.
const (
	cgroupRoot  = "/sys/fs/cgroup"
	scopeSlice  = "machine.slice"
	scopeSuffix = ".scope"
	servingLeaf = "serve" // the cgroup of the serving processes: a cgroup with limited children has no processes itself
)

// Scope is the cgroup path of the lab's scope, "" if systemd does not manage the cgroups: it does not run, or there is no cgroup v2.
func Scope(name string) string { return scope("/", name) }

func scope(root, name string) string {
	if !exists(filepath.Join(root, "run/systemd/system")) || cgroups(root) != "v2" {
		return ""
	}
	return "/" + scopeSlice + "/" + name + scopeSuffix
}

// inScope wraps argv so that it runs in the lab's scope, unless the scope exists; path is "" or Scope's. At a shutdown everything in it
// gets SIGTERM, and soon after SIGKILL: a container's own systemd understands SIGTERM as another request.
func inScope(argv []string, path string) []string {
	if path == "" || exists(cgroupRoot+path) {
		return argv
	}
	return append([]string{
		"systemd-run", "--quiet", "--scope", "--collect", "--slice=" + scopeSlice, "--unit=" + filepath.Base(path),
		"--property=Delegate=yes", "--property=TimeoutStopSec=20s", "--description=k8slab: a lab's libvirt daemon and its machines", "--",
	}, argv...)
}

// ScopeEnds waits until systemd has noticed that the scope is empty, because until then no other scope of this name can begin. It removes
// the cgroup if systemd left it.
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

// programsIn lists the programs that run in a cgroup and below it.
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

// joinLeaf opens the leaf of an existing scope, for a process to start in; nil if there is none.
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

// enterLeaf moves this process into the leaf if systemd-run started it, so that the machines' cgroups can be its siblings.
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
