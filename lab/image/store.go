package image

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"k8slab/lab/command"
	"k8slab/lab/inventory"
	"k8slab/lab/wait"
)

// sharedStore is the image's directory with the preloaded layers and blobs. It is read-only and shared, so that containers of one computer
// share their page cache too. /var/lib/containerd has its own databases, and links to it.
var sharedStore = path.Dir(inventory.Blobs)

const storeConfig = `version = 3
root = %q
state = %q
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.nri.v1.nri", "io.containerd.podsandbox.controller.v1.podsandbox"]
[grpc]
  address = %q
[ttrpc]
  address = %q
`

// importing is how an archive of container images gets into containerd. They are pinned: kubelet's garbage collection would remove them
// from a full disk, and no registry could give them back.
var importing = []string{"images", "import", "--local", "--snapshotter", "overlayfs", "--label", "io.cri-containerd.pinned=pinned"}

// fillStore loads the archive's container images into the containerd store of the tree at root, with a containerd of its own, and says what
// that has then.
func fillStore(ctx context.Context, root, archive string, bin func(component, program string) string) ([]inventory.Image, error) {
	lib := filepath.Join(root, "var/lib/containerd")
	run, err := os.MkdirTemp("", "k8slab-") // short, because a socket's path has at most 107 bytes
	if err != nil {
		return nil, err
	}
	defer func() { _ = removeTree(run) }()
	config, socket := filepath.Join(run, "config.toml"), filepath.Join(run, "c.sock")
	if err := os.WriteFile(config, fmt.Appendf(nil, storeConfig, lib, filepath.Join(run, "state"), socket, socket+".ttrpc"), 0o600); err != nil {
		return nil, err
	}
	stop, err := startContainerd(ctx, bin("containerd", "containerd"), config, socket)
	if err != nil {
		return nil, err
	}
	defer stop()
	ctr := func(args ...string) (string, error) {
		return command.Run(ctx, append([]string{bin("containerd", "ctr"), "-a", socket, "-n", "k8s.io"}, args...)...)
	}
	if _, err := ctr(append(slices.Clone(importing), archive)...); err != nil {
		return nil, err
	}
	table, err := ctr("images", "list")
	if err != nil {
		return nil, err
	}
	stop()
	return storedImages(table), shareStore(root)
}

func startContainerd(ctx context.Context, binary, config, socket string) (stop func(), err error) {
	cmd := exec.Command(binary, "--config", config, "--log-level", "warn")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	log, err := os.Create(filepath.Join(filepath.Dir(socket), "log"))
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); _ = log.Close(); close(done) }()
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-done
		}
	}
	err = wait.For(ctx, "containerd for the image build", 30*time.Second, 50*time.Millisecond, func(context.Context) error {
		select {
		case <-done:
			text, _ := os.ReadFile(log.Name())
			return wait.Hopeless(fmt.Errorf("containerd exited: %s", text))
		default:
		}
		_, err := os.Stat(socket)
		return err
	})
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// shareStore moves layers and blobs out of /var/lib into the image's read-only part and leaves links.
func shareStore(root string) error {
	lib, shared := filepath.Join(root, "var/lib/containerd"), filepath.Join(root, sharedStore)
	for _, set := range []struct{ pattern, name string }{
		{"io.containerd.snapshotter.v1.overlayfs/snapshots/*/fs", "layers"},
		{"io.containerd.content.v1.content/blobs/sha256/*", "blobs"},
	} {
		paths, err := filepath.Glob(filepath.Join(lib, set.pattern))
		if err != nil {
			return err
		}
		if len(paths) == 0 {
			return fmt.Errorf("containerd's store has no %s: its layout has changed", set.pattern)
		}
		if err := os.MkdirAll(filepath.Join(shared, set.name), 0o755); err != nil {
			return err
		}
		for _, path := range paths {
			base := filepath.Base(path)
			if base == "fs" {
				base = filepath.Base(filepath.Dir(path))
			}
			if err := os.Rename(path, filepath.Join(shared, set.name, base)); err != nil {
				return err
			}
			if err := os.Symlink(filepath.Join(sharedStore, set.name, base), path); err != nil {
				return err
			}
		}
	}
	return nil
}
