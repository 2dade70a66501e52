package image

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8slab/lab/inventory"
)

// listedPlaces are where the files are that a node compares with its image: programs and their libraries, units, the configuration of what
// the lab installs, and the container images' layers and blobs. Not listed is what a healthy node or its administrator changes.
var listedPlaces = []string{
	"bin", "sbin", "lib", "lib64", "usr/bin", "usr/sbin", "usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/openssh", "usr/lib/k8slab",
	"usr/lib/systemd", "usr/lib/sysctl.d", "usr/lib/modules-load.d", "opt/cni", "usr/share/k8slab",
	"etc/alternatives", "etc/cni", "etc/containerd", "etc/crictl.yaml", "etc/ld.so.conf", "etc/ld.so.conf.d", "etc/modules-load.d",
	"etc/nsswitch.conf", "etc/pam.d", "etc/ssh", "etc/sysctl.conf", "etc/sysctl.d", "etc/systemd",
}

// unlisted are parts of those places that no component uses, or that are a node's own.
var unlisted = []string{
	"/usr/lib/x86_64-linux-gnu/gconv", "/usr/lib/x86_64-linux-gnu/perl", "/usr/lib/x86_64-linux-gnu/perl-base", "/etc/systemd/network",
	"/etc/ssh/ssh_host_", inventory.Path,
}

// needed says what does not work without a file: the first entry that the path is, or is below, decides. Programs of Debian's that are not
// here are comforts.
var needed = []struct {
	component string
	paths     []string
}{
	{"containerd", programs("containerd", "containerd-shim-runc-v2", "runc")},
	{"containerd", []string{"/etc/containerd", "/usr/lib/systemd/system/containerd.service"}},
	{"kubelet", programs("kubelet", "mount", "umount", "nsenter", "conntrack", "ip", "tc", "ethtool", "socat", "kmod", "modprobe", "iptables",
		"xtables-nft-multi", "nft")},
	{"kubelet", []string{"/usr/lib/systemd/system/kubelet.service", "/usr/lib/systemd/system/kubelet.service.d"}},
	{"kubeadm", programs("kubeadm")},
	{"pod network", []string{"/opt/cni", "/etc/cni", "/" + pristineCNI, "/" + pristinePlugins}},
	{"container images", []string{sharedStore}},
	{"labnode", append(programs("labnode"), "/usr/lib/k8slab", "/usr/share/k8slab")},
	{"keepalived", append(programs("keepalived", "curl"), "/usr/lib/systemd/system/keepalived.service",
		"/usr/lib/systemd/system/keepalived.service.d")},
	{"ssh", append(programs("sshd", "bash", "dash", "sh"), "/usr/lib/openssh/sshd-auth", "/usr/lib/openssh/sshd-session", "/etc/ssh", "/etc/pam.d", "/usr/lib/systemd/system/ssh.service")},
	{"systemd", append(programs("systemctl", "journalctl", "udevadm"), "/usr/lib/systemd", "/etc/systemd")},
	{"kernel settings", []string{"/etc/sysctl.conf", "/etc/sysctl.d", "/etc/modules-load.d", "/usr/lib/sysctl.d", "/usr/lib/modules-load.d"}},
	{"libraries", []string{"/lib", "/lib64", "/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
		"/bin", "/sbin"}},
	{"labctl's tools", append(programs("crictl", "ctr", "kubectl", "etcdctl", "etcdutl", "cat", "cp", "mv", "rm", "mkdir", "mktemp", "chmod",
		"chown", "env", "sed", "grep", "find", "tar", "sync", "sha256sum", "dirname", "readlink", "tail"), "/etc/crictl.yaml")},
}

// programs are the places of programs of a node.
func programs(names ...string) (paths []string) {
	for _, name := range names {
		paths = append(paths, "/usr/bin/"+name, "/usr/sbin/"+name)
	}
	return paths
}

// componentOf says what needs the file, and whether it is listed at all.
func componentOf(file string) (component string, listed bool) {
	if slices.ContainsFunc(unlisted, func(prefix string) bool {
		return isOrBelow(file, prefix) || strings.HasSuffix(prefix, "_") && strings.HasPrefix(file, prefix)
	}) {
		return "", false
	}
	for _, n := range needed {
		if slices.ContainsFunc(n.paths, func(at string) bool { return isOrBelow(file, at) }) {
			return n.component, true
		}
	}
	return "", true
}

func isOrBelow(file, at string) bool { return file == at || strings.HasPrefix(file, at+"/") }

// writeInventory lists what the finished tree has.
func writeInventory(root string, images []inventory.Image) error {
	files, err := inventory.Make(root, listedPlaces, componentOf)
	if err != nil {
		return err
	}
	return inventory.List{Files: files, Images: images}.Write(root)
}

// storedImages reads what `ctr images list` prints of a store: name, media type and digest begin each line but the first.
func storedImages(table string) (images []inventory.Image) {
	for line := range strings.Lines(table) {
		if f := strings.Fields(line); len(f) > 2 && strings.HasPrefix(f[2], "sha256:") {
			images = append(images, inventory.Image{Name: f[0], MediaType: f[1], Digest: f[2]})
		}
	}
	return images
}

// bundled is the part of an image's list that its bundle brings to a machine with a stock image.
func bundled(l inventory.List, paths []string) inventory.List {
	l.Files = slices.DeleteFunc(slices.Clone(l.Files), func(f inventory.File) bool {
		return !slices.ContainsFunc(paths, func(at string) bool { return isOrBelow(f.Path, "/"+at) })
	})
	return l
}

// Originals finds the files of node images by their contents.
type Originals struct {
	roots []string
	lists []inventory.List
}

// OpenOriginals reads the lists of all node images in the cache. Images from before there were lists have none of their files found.
func OpenOriginals() (*Originals, error) {
	dir, err := CacheDir()
	if err != nil {
		return nil, err
	}
	roots, err := filepath.Glob(filepath.Join(dir, "node-*", "root"))
	if err != nil {
		return nil, err
	}
	o := &Originals{}
	for _, root := range roots {
		l, err := inventory.Read(root)
		if err != nil || len(l.Files) == 0 || strings.Contains(root, partial) {
			continue // an image that is being built, or was damaged
		}
		o.roots, o.lists = append(o.roots, root), append(o.lists, l)
	}
	return o, nil
}

// Open opens the file that nodes have at the path, with that SHA-256, and gives its size. The error wraps fs.ErrNotExist where no image in
// the cache has it. The path may be a node's word: nothing outside of an image is opened.
func (o *Originals) Open(file, sha256 string) (io.ReadCloser, int64, error) {
	for i, l := range o.lists {
		k := slices.IndexFunc(l.Files, func(f inventory.File) bool { return f.Path == file && f.Type == inventory.Plain && f.SHA256 == sha256 })
		if k < 0 {
			continue
		}
		content, err := openIn(o.roots[i], file)
		if err != nil {
			return nil, 0, err
		}
		return content, l.Files[k].Size, nil
	}
	return nil, 0, &fs.PathError{Op: "find", Path: file, Err: errors.Join(errNotCached, fs.ErrNotExist)}
}

var errNotCached = errors.New("no node image in the cache has it")

func openIn(root, file string) (*os.File, error) {
	within, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer within.Close()
	return within.Open(strings.TrimPrefix(path.Clean(file), "/"))
}
