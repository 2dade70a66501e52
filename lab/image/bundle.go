package image

import (
	"context"
	_ "embed" // of the install script
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8slab/lab/command"
	"k8slab/lab/event"
	"k8slab/lab/inventory"
)

// Bundle turns a machine with a stock image into a node: it has everything that the node image has beside Debian, and the Debian packages
// that this needs.
type Bundle struct {
	Archive string // tar, to be unpacked over the root of the machine
	Hash    string
}

// BundleInstall is the script that is then run there, as root, with the node's machine-id, its name server and the bundle's hash. When it
// is done, it writes the hash to BundleMark.
const (
	BundleInstall = "/" + bundleDir + "/install"
	BundleMark    = "/var/lib/k8slab/provisioned"
)

// bundleDir is the directory in the archive for what only the install script needs.
const bundleDir = "var/lib/k8slab/bundle"

//go:embed bundle/install
var installScript []byte

// notInBundle are the lab's own files that prepare a bare Debian tree for a machine. A stock image needs none of them: it has its own
// network configuration, file systems, and cloud-init.
var notInBundle = []string{
	"etc/fstab", "etc/pam.d/sshd", "usr/lib/systemd/system/k8slab-seed.service", "usr/lib/k8slab/seed",
	"usr/lib/systemd/system/keepalived.service.d/10-address.conf", // asks systemd-networkd, which the image may not use
	"usr/lib/systemd/system/systemd-udev-trigger.service.d/10-few.conf",
	"usr/lib/systemd/system/k8slab-cgroups.service", "usr/lib/k8slab/show-devices", "usr/lib/k8slab/init", "usr/lib/k8slab/init-cgroups",
}

var (
	bundleEnabled = []string{"containerd", "kubelet"}
	// The image may have swap, which kubelet refuses.
	bundleMasked = slices.Concat(disabledUnits, []string{"swap.target"})
)

// BuildBundle returns the image's bundle for machines with the distribution, after making it if the cache does not have it.
func (i Image) BuildBundle(ctx context.Context, distribution string, events *event.Stream) (Bundle, error) {
	c := cache{dir: filepath.Dir(i.Dir), events: events}
	suite := suiteOf(distribution)
	debs, err := c.debs(ctx, suite)
	if err != nil {
		return Bundle{}, err
	}
	paths, err := bundlePaths(suite)
	if err != nil {
		return Bundle{}, err
	}
	inputs := slices.Concat([]string{"bundle 2", filepath.Base(i.Dir), filepath.Base(debs), string(installScript)},
		paths, bundleEnabled, bundleMasked)
	dir, err := c.get(ctx, "bundle", inputs, func(dir string, step *event.Step) error {
		step.Progress("packing the programs and container images")
		return makeBundle(ctx, i.Root(), suite, debs, paths, dir)
	})
	return Bundle{Archive: filepath.Join(dir, bundleArchive), Hash: strings.TrimPrefix(filepath.Base(dir), "bundle-")}, err
}

const bundleArchive = "bundle.tar"

// bundlePaths are what the image has beside Debian, as paths in its root.
func bundlePaths(suite string) ([]string, error) {
	paths := []string{"usr/bin/labnode", rootsKubeconfig, cniPlugins + "/flannel", staticPods, path.Dir(strings.TrimPrefix(sharedStore, "/")), "var/lib/containerd"}
	for place, components := range nodePrograms {
		for _, programs := range components {
			for _, p := range programs {
				paths = append(paths, path.Join(place, p))
			}
		}
	}
	err := eachOwnFile(suite, func(rel string) error {
		if !slices.Contains(notInBundle, rel) {
			paths = append(paths, rel)
		}
		return nil
	})
	slices.Sort(paths)
	return paths, err
}

// makeBundle writes the archive into dir. Container images may have files with attributes, so those go along.
func makeBundle(ctx context.Context, root, suite, debs string, paths []string, dir string) error {
	stage := filepath.Join(dir, "stage")
	own := filepath.Join(stage, bundleDir)
	if err := os.MkdirAll(own, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(own, "install"), installScript, 0o755); err != nil {
		return err
	}
	lists := map[string][]string{"packages": bundlePackages(), "enabled": bundleEnabled, "masked": bundleMasked, "distribution": {suite}}
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		if err := os.WriteFile(filepath.Join(own, name), []byte(strings.Join(lists[name], "\n")+"\n"), 0o644); err != nil {
			return err
		}
	}
	all, err := inventory.Read(root)
	if err != nil {
		return err
	}
	if err := bundled(all, paths).Write(stage); err != nil {
		return err
	}
	if _, err := command.Run(ctx, "cp", "--archive", "--link", debs, filepath.Join(own, "debs")); err != nil {
		return err
	}
	argv := []string{
		"tar", "--create", "--file", filepath.Join(dir, bundleArchive), "--numeric-owner", "--xattrs", "--xattrs-include=*",
		"-C", stage, bundleDir, strings.TrimPrefix(inventory.Path, "/"), "-C", root,
	}
	if _, err := command.Run(ctx, append(argv, paths...)...); err != nil {
		return err
	}
	return os.RemoveAll(stage)
}
