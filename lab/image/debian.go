package image

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8slab/config"
	"k8slab/lab/command"
	"k8slab/lab/event"
)

// debianPackages is what a node has beside Kubernetes: an init system, a way in, what kubeadm's preflight, kubelet, kube-proxy and the
// CNI plugins call, the virtual IP, and a kernel for virtual machines.
var debianPackages = []string{
	"systemd", "systemd-sysv", "systemd-timesyncd", "libpam-systemd", "dbus", "udev", "kmod", "linux-image-cloud-amd64", "initramfs-tools",
	"openssh-server", "sudo", "ca-certificates", "curl", "netbase", "procps", "less", "tar", "gzip",
	"iproute2", "iputils-ping", "nftables", "iptables", "ebtables", "conntrack", "ethtool", "socat", "tcpdump",
	"mount", "util-linux", "e2fsprogs", "runc", "catatonit", "keepalived",
}

// stockPackages are those of them that a stock cloud image has already, or that only the lab's own image needs.
var stockPackages = []string{
	"systemd", "systemd-sysv", "systemd-timesyncd", "libpam-systemd", "dbus", "udev", "kmod", "linux-image-cloud-amd64", "initramfs-tools",
	"openssh-server", "sudo", "netbase", "procps", "less", "tar", "gzip", "mount", "util-linux", "e2fsprogs", "catatonit",
}

// netToolsPackages are what kube-proxy and flannel call in their container images.
var netToolsPackages = []string{"iptables", "nftables"}

// bootstrapNetTools unpacks them, with the links that configuring iptables would make.
func bootstrapNetTools(ctx context.Context, suite, dir string, step *event.Step) error {
	if err := packageTree(ctx, suite, dir, netToolsPackages, step); err != nil {
		return err
	}
	for _, name := range []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"} {
		if err := os.Symlink("xtables-nft-multi", filepath.Join(dir, "usr/sbin", name)); err != nil {
			return err
		}
	}
	return nil
}

// packageTree fills dir with the files of the packages. Since Debian 13 all are below usr, and the links to there are base-files', which needs
// to be configured.
func packageTree(ctx context.Context, suite, dir string, packages []string, step *event.Step) error {
	if err := bootstrap(ctx, suite, dir, "extract", packages, step); err != nil {
		return err
	}
	return linkUsr(dir)
}

// linkUsr makes the links that a tree of files below usr lacks.
func linkUsr(dir string) error {
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		if !exists(filepath.Join(dir, "usr", name)) || exists(filepath.Join(dir, name)) {
			continue
		}
		if err := os.Symlink("usr/"+name, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// suiteOf is the release of Debian for a distribution. A node image that is fetched says none.
func suiteOf(distribution string) string { return cmp.Or(distribution, config.DefaultDistribution) }

// debianInputs decide the result of a bootstrap, except for the point release, which depends on the mirror.
func debianInputs(suite string, packages []string) []string {
	return append([]string{"debian 1", suite}, packages...)
}

// bootstrap fills dir with a tree of that release of Debian that has the packages: configured, or (variant "extract") only unpacked. More is options of
// mmdebstrap.
func bootstrap(ctx context.Context, suite, dir, variant string, packages []string, step *event.Step, more ...string) error {
	sources, err := debianSources(ctx, suite)
	if err != nil {
		return err
	}
	argv := []string{
		"mmdebstrap", "--mode=root", "--variant=" + variant, "--include=" + strings.Join(packages, ","),
		"--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
	}
	argv = append(append(argv, more...), suite, dir)
	var stdin io.Reader
	if len(sources) > 0 {
		argv = append(argv, "-")
		stdin = strings.NewReader(strings.Join(sources, "\n") + "\n")
	}
	_, err = command.Command{
		Argv: argv, Stdin: stdin,
		Line: func(line string) { step.Progress("%s", strings.TrimPrefix(line, "I: ")) },
	}.Run(ctx)
	return err
}

// debianSources are sources.list lines for that release from the mirrors that this computer's own apt configuration names; none
// where it names no Debian mirror (Ubuntu): mmdebstrap then takes Debian's own.
func debianSources(ctx context.Context, suite string) ([]string, error) {
	out, err := command.Run(ctx, "apt-get", "indextargets", "--format", "$(ORIGIN) $(CODENAME) $(COMPONENT) $(SITE)", "Created-By: Packages")
	if err != nil {
		return nil, fmt.Errorf("read this computer's apt configuration: %w", err)
	}
	return parseIndexTargets(out, suite), nil
}

func parseIndexTargets(out, suite string) []string {
	var sources []string
	for _, line := range strings.Split(out, "\n") {
		f := strings.Fields(line)
		if len(f) != 4 || f[0] != "Debian" || f[2] != "main" {
			continue
		}
		_, pocket, _ := strings.Cut(f[1], "-") // bookworm-security → security
		target := suite
		switch pocket {
		case "":
		case "security", "updates":
			target += "-" + pocket
		default: // backports and the like would change versions
			continue
		}
		if source := fmt.Sprintf("deb %s %s main", f[3], target); !slices.Contains(sources, source) {
			sources = append(sources, source)
		}
	}
	return sources
}

// bundlePackages are the Debian packages that a stock image may lack.
func bundlePackages() []string {
	return slices.DeleteFunc(slices.Clone(debianPackages), func(p string) bool { return slices.Contains(stockPackages, p) })
}

// debs returns a directory, as a repository for apt, with those packages and all their dependencies, down to the C library. The image's own
// apt decides which of them it lacks.
func (c cache) debs(ctx context.Context, suite string) (string, error) {
	packages := bundlePackages()
	return c.get(ctx, "debs", append([]string{"debs 1"}, debianInputs(suite, packages)...), func(dir string, step *event.Step) error {
		tree := filepath.Join(dir, "tree")
		if err := bootstrap(ctx, suite, tree, "extract", packages, step, "--skip=cleanup/apt/cache"); err != nil {
			return err
		}
		found, err := filepath.Glob(filepath.Join(tree, "var/cache/apt/archives/*.deb"))
		if err != nil {
			return err
		}
		if len(found) < len(packages) {
			return fmt.Errorf("mmdebstrap left %d packages in its cache, expected %d and what they depend on", len(found), len(packages))
		}
		for _, path := range found {
			if err := os.Rename(path, filepath.Join(dir, filepath.Base(path))); err != nil {
				return err
			}
		}
		if err := os.RemoveAll(tree); err != nil {
			return err
		}
		return writePackages(ctx, dir)
	})
}

// writePackages writes the index by which apt finds the packages in dir (deb-control(5), and "Packages" in the repository's format).
func writePackages(ctx context.Context, dir string) error {
	found, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil {
		return err
	}
	var index strings.Builder
	for _, path := range found {
		control, err := command.Run(ctx, "dpkg-deb", "--field", path)
		if err != nil {
			return err
		}
		sum, err := fileHash(path)
		if err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&index, "%s\nFilename: ./%s\nSize: %d\nSHA256: %s\n\n", strings.TrimRight(control, "\n"), filepath.Base(path), info.Size(), sum)
	}
	return os.WriteFile(filepath.Join(dir, "Packages"), []byte(index.String()), 0o644)
}

// A Debian tree has files of many owners, and making it mounts file systems and changes the root directory. That needs root, or a user
// namespace in which the user is root and has the sub-IDs of subuid(5).

// asRoot is how a user runs a command as root of such a namespace. unshare(1) has --map-auto since util-linux 2.38 (Debian 12, Ubuntu
// 24.04).
var asRoot = []string{"unshare", "--user", "--map-root-user", "--map-auto", "--mount", "--"}

// AsRoot wraps argv so that it runs as root of a user namespace. The error says why there can be none.
func AsRoot(ctx context.Context, argv []string) ([]string, error) {
	if _, err := command.Run(ctx, append(asRoot[:len(asRoot):len(asRoot)], "true")...); err != nil {
		return nil, fmt.Errorf("no user namespace: %w", err)
	}
	return append(asRoot[:len(asRoot):len(asRoot)], argv...), nil
}

// needRoot refuses to build as another user: the files would have the wrong owners.
func needRoot(ctx context.Context, cacheDir string) error {
	if os.Geteuid() == 0 {
		return nil
	}
	_, err := AsRoot(ctx, nil)
	if err == nil {
		err = fmt.Errorf("this is user %d", os.Geteuid())
	}
	return fmt.Errorf("building images needs root: %w; next, once: sudo env XDG_CACHE_HOME=%s labctl image build --disk", err, filepath.Dir(cacheDir))
}
