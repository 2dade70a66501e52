package image

import (
	"context"
	"embed"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8slab/config"
	"k8slab/lab/command"
	"k8slab/lab/event"
)

// ownFiles are the lab's own files of a node, at their place in the tree.
//
//go:embed all:files
var ownFiles embed.FS

const ownRoot = "files"

// ownScripts is where the executable ones are: embedding keeps no modes.
const ownScripts = "usr/lib/k8slab/"

// notForBookworm are those of them that programs of Debian 12 refuse.
var notForBookworm = []string{"etc/ssh/sshd_config.d/k8slab-penalties.conf"}

// Script is the text of a script that nodes made from the image have in /usr/lib/k8slab.
func Script(name string) (string, error) {
	text, err := ownFiles.ReadFile(ownRoot + "/" + ownScripts + name)
	return string(text), err
}

// SlowProbes is the node's directory with kubeadm's patches for control planes that are emulated.
const SlowProbes = "/usr/share/k8slab/patient"

// SlowProbesPatches are the patches in SlowProbes by their targets. All are strategic.
func SlowProbesPatches() (map[string]string, error) {
	patches := map[string]string{}
	for _, target := range []string{"etcd", "kube-apiserver"} {
		text, err := ownFiles.ReadFile(ownRoot + SlowProbes + "/" + target + "+strategic.yaml")
		if err != nil {
			return nil, err
		}
		patches[target] = string(text)
	}
	return patches, nil
}

var enabledUnits = []string{"systemd-networkd", "ssh", "containerd", "kubelet", "k8slab-seed", "k8slab-cgroups"}

// disabledUnits are units that would write, wait for or clean up things that a lab's node does not have.
var disabledUnits = []string{
	"e2scrub_reap.service", "e2scrub_all.timer", "apt-daily.timer", "apt-daily-upgrade.timer", "fstrim.timer", "dpkg-db-backup.timer",
	"getty@tty1.service", "console-getty.service",
	"systemd-timesyncd.service", // a lab's network has no time server, and its machines get this computer's clock
}

// bareUnits are also disabled on machines with the lab's own image.
var bareUnits = []string{
	"systemd-networkd-wait-online.service",
	"serial-getty@ttyS0.service", // nobody has a password
	"user@.service",              // a user's service manager, which nobody needs: 20 s of an emulated processor
	"modprobe@.service",          // the kernel loads what is used
	"sshd-unix-local.socket",     // Debian 13's second way in
	"tmp.mount",                  // Debian 13's /tmp would take the memory of nodes that have little
	// At the first boot, what the image has already; at each boot, what reads settings that a node does not have.
	"ldconfig.service", "systemd-journal-catalog-update.service", "systemd-sysusers.service", "systemd-update-done.service",
	"systemd-networkd-persistent-storage.service", "systemd-udev-load-credentials.service", "systemd-network-generator.service",
}

// root makes the image's root tree in dir/root.
func (b *builder) root(ctx context.Context, dir, labnode string, step *event.Step) error {
	root := filepath.Join(dir, "root")
	step.Progress("copying the Debian tree")
	if _, err := command.Run(ctx, "cp", "-a", b.debian, root); err != nil {
		return err
	}
	for place, components := range nodePrograms {
		for component, programs := range components {
			for _, p := range programs {
				if err := b.install(ctx, b.bin(component, p), filepath.Join(root, place, p)); err != nil {
					return err
				}
			}
		}
	}
	if err := b.install(ctx, labnode, filepath.Join(root, "usr/bin/labnode")); err != nil {
		return err
	}
	// labnode is the flannel delegate when it is called by that name (a CNI plugin is found by its file name).
	if err := os.Symlink("/usr/bin/labnode", filepath.Join(root, cniPlugins, "flannel")); err != nil {
		return err
	}
	if err := writeOwnFiles(root, b.suite, b.pauseImage()); err != nil {
		return err
	}
	if err := linkKubeconfig(root); err != nil {
		return err
	}
	// Copies from which a node restores programs that somebody deleted. They are hard links, which take no space.
	if _, err := command.Run(ctx, "cp", "--archive", "--link", filepath.Join(root, cniPlugins), filepath.Join(root, pristinePlugins)); err != nil {
		return err
	}
	if err := configureUnits(ctx, root); err != nil {
		return err
	}
	step.Progress("building the container images")
	images, err := containerImages(b.images, b.bin, trees{b.netTools, b.busybox}, labnode, filepath.Join(root, "usr/bin/catatonit"))
	if err != nil {
		return err
	}
	archive := filepath.Join(dir, "images.tar")
	if err := writeImages(archive, images); err != nil {
		return err
	}
	step.Progress("loading %d container images", len(images))
	stored, err := fillStore(ctx, root, archive, b.bin)
	if err != nil {
		return err
	}
	if err := os.Remove(archive); err != nil {
		return err
	}
	step.Progress("listing what a node needs")
	if err := b.writePrograms(ctx, root); err != nil {
		return err
	}
	return writeInventory(root, stored)
}

func (b *builder) install(ctx context.Context, from, to string) error {
	_, err := command.Run(ctx, "install", "-D", "-m", "0755", from, to)
	return err
}

func (b *builder) pauseImage() string {
	i := slices.IndexFunc(b.images, func(ref string) bool { return strings.Contains(ref, "/pause:") })
	if i < 0 {
		return ""
	}
	return b.images[i]
}

// writeOwnFiles writes the lab's files; PAUSE_IMAGE in containerd's configuration stands for the one that kubeadm names.
func writeOwnFiles(root, suite, pauseImage string) error {
	return eachOwnFile(suite, func(rel string) error {
		data, err := ownFiles.ReadFile(ownRoot + "/" + rel)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(rel, ownScripts) {
			mode = 0o755
		}
		target := filepath.Join(root, rel)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		text := []byte(strings.ReplaceAll(string(data), "PAUSE_IMAGE", pauseImage))
		if filepath.Dir(rel) == cniConfigs { // and where a node can take it from when somebody deleted it
			if err := writeUnder(filepath.Join(root, pristineCNI), filepath.Base(rel), text); err != nil {
				return err
			}
		}
		return os.WriteFile(target, text, mode)
	})
}

// linkKubeconfig has kubectl of root use the administrator's kubeconfig where there is one: on a control plane. Elsewhere the link leads
// nowhere, which is to kubectl as if there were none.
func linkKubeconfig(root string) error {
	link := filepath.Join(root, rootsKubeconfig)
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return err
	}
	return os.Symlink("/etc/kubernetes/admin.conf", link)
}

const (
	rootsKubeconfig = "root/.kube/config"

	cniConfigs = "etc/cni/net.d"
	// lab/join looks for these there
	pristineCNI     = "usr/share/k8slab/cni"
	pristinePlugins = "usr/share/k8slab/cni-plugins"
	// upstream's packages bring it; without it a worker's kubelet complains to its journal every second
	staticPods = "etc/kubernetes/manifests"
)

func writeUnder(dir, name string, text []byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), text, 0o644)
}

// eachOwnFile gives the paths of the lab's files on the release of Debian, in the tree.
func eachOwnFile(suite string, use func(rel string) error) error {
	return fs.WalkDir(ownFiles, ownRoot, func(path string, d fs.DirEntry, err error) error {
		rel := strings.TrimPrefix(path, ownRoot+"/")
		if err != nil || d.IsDir() || suite == config.Bookworm && slices.Contains(notForBookworm, rel) {
			return err
		}
		return use(rel)
	})
}

func ownFilesHash(suite string) (string, error) {
	var all []string
	err := eachOwnFile(suite, func(rel string) error {
		data, err := ownFiles.ReadFile(ownRoot + "/" + rel)
		all = append(all, rel, string(data))
		return err
	})
	all = append(all, enabledUnits...)
	all = append(all, disabledUnits...)
	return hash(append(all, bareUnits...)...), err
}

func configureUnits(ctx context.Context, root string) error {
	for _, argv := range [][]string{append([]string{"enable"}, enabledUnits...), append([]string{"mask"}, slices.Concat(disabledUnits, bareUnits)...)} {
		if _, err := command.Run(ctx, append([]string{"chroot", root, "systemctl", "--quiet"}, argv...)...); err != nil {
			return err
		}
	}
	// Identities belong to a node, never to the image.
	keys, err := filepath.Glob(filepath.Join(root, "etc/ssh/ssh_host_*"))
	if err != nil {
		return err
	}
	for _, path := range append(keys, filepath.Join(root, "etc/hostname")) {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(root, "etc/machine-id"), nil, 0o444); err != nil {
		return err
	}
	mountPoints := []string{"disk", "seed"} // of a container, see files/usr/lib/k8slab/init
	for _, dir := range append(mountPoints, staticPods) {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	return nil
}
