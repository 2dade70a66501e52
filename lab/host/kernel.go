package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8slab/lab/atomicfile"
	"k8slab/lab/command"
	"k8slab/lab/event"
	"k8slab/lab/kernel"
)

// kernelLimit is a limit of the kernel that all container nodes share, and a value that is enough for a dozen of them.
type kernelLimit struct {
	name   string // as sysctl says it
	enough int
}

var kernelLimits = []kernelLimit{
	// A node's systemd, kubelet and containerd need about 25. Linux' default of 128 is not enough for the sixth node, whose init fails with
	// "too many open files".
	{"fs.inotify.max_user_instances", 1024},
	// Who follows logs watches each file.
	{"fs.inotify.max_user_watches", 524288},
}

func (k kernelLimit) path(root string) string {
	return filepath.Join(root, "proc/sys", strings.ReplaceAll(k.name, ".", "/"))
}

func (k kernelLimit) value(root string) (int, error) {
	data, err := os.ReadFile(k.path(root))
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", k.path(root), err)
	}
	return n, nil
}

// computerKernel is the kernel of this computer, which container nodes share.
type computerKernel struct {
	root     string
	modprobe func(ctx context.Context, modules ...string) error
}

var thisKernel = computerKernel{root: "/", modprobe: func(ctx context.Context, modules ...string) error {
	_, err := command.Run(ctx, append([]string{"modprobe", "--all"}, modules...)...)
	return err
}}

// PrepareKernel raises the kernel's limits, and loads the modules that container nodes need and cannot load themselves. It shows these
// changes, because they last until the next boot. If systemd loads modules at boot, it gets a file with the lab's UUID in its name for
// these modules; ForgetKernel removes that.
func PrepareKernel(ctx context.Context, id string, events *event.Stream) error {
	return errors.Join(thisKernel.raiseLimits(events), thisKernel.loadModules(ctx, id, events))
}

// ForgetKernel removes the lab's file of modules to load at boot.
func ForgetKernel(id string) error {
	err := os.Remove(thisKernel.modulesFile(id))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func (k computerKernel) modulesFile(id string) string {
	return filepath.Join(k.root, "etc/modules-load.d/k8slab-"+id+".conf")
}

func (k computerKernel) raiseLimits(events *event.Stream) error {
	for _, limit := range kernelLimits {
		now, err := limit.value(k.root)
		if err != nil {
			return err
		}
		if now >= limit.enough {
			continue
		}
		step := events.Start("", "kernel", 0)
		if err := os.WriteFile(limit.path(k.root), []byte(strconv.Itoa(limit.enough)), 0o644); err != nil {
			return step.End(fmt.Errorf("container nodes share %s, which is %d here, too few for several: %w; run: sudo sysctl %s=%d",
				limit.name, now, err, limit.name, limit.enough))
		}
		step.EndWith(fmt.Sprintf("%s raised from %d to %d", limit.name, now, limit.enough))
	}
	return nil
}

func (k computerKernel) loadModules(ctx context.Context, id string, events *event.Stream) error {
	loadable, hopeless, _ := k.says().MissingModules()
	if len(hopeless) > 0 {
		release := k.says().Release()
		return fmt.Errorf("container nodes need the kernel module %s, which this computer's kernel %s does not have; next: install its modules "+
			"(Ubuntu: linux-modules-extra-%s), or reboot if a newer kernel was installed since the last boot", strings.Join(hopeless, ", "), release, release)
	}
	if len(loadable) == 0 {
		return nil
	}
	names := strings.Join(loadable, " ")
	step := events.Start("", "kernel", 0)
	if err := k.modprobe(ctx, loadable...); err != nil {
		return step.End(fmt.Errorf("container nodes need kernel modules that they cannot load themselves: %w; run: sudo modprobe --all %s", err, names))
	}
	if exists(filepath.Join(k.root, "run/systemd/system")) {
		if err := atomicfile.Write(k.modulesFile(id), 0o644, []byte(strings.ReplaceAll(names, " ", "\n")+"\n")); err != nil {
			return step.End(err)
		}
	}
	step.EndWith("loaded the modules " + names)
	return nil
}

// says reads a file of the kernel.
func (k computerKernel) says() kernel.Kernel { return kernel.Kernel(k.root) }
