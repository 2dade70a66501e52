package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ownDirs are directories for which the lab's libvirtd gets its own in place of the computer's, so that it neither sees nor leaves anything
// there.
var ownDirs = map[string]string{
	"/etc/libvirt": "etc", libvirtFiles: "lib/libvirt", "/run/libvirt": "run", "/var/log/libvirt": "log", "/var/cache/libvirt": "cache",
}

// libvirtFiles has the hosts of a network, which dnsmasq reads as another user, and the storage pool, whose volumes QEMU reads as yet
// another. So it must be open to them; other users of this computer are kept out by the closed directory above it.
const libvirtFiles = "/var/lib/libvirt"

// OwnFile is the path on this computer of what the lab's own daemon sees as a file below /var/lib/libvirt.
func OwnFile(dir, path string) string {
	return filepath.Join(dir, ownDirs[libvirtFiles], strings.TrimPrefix(path, libvirtFiles))
}

var ownConfig = map[string]string{
	"libvirtd.conf": "auth_unix_rw = \"none\"\nunix_sock_rw_perms = \"0700\"\nlog_outputs = \"3:stderr\"\n",
	// QEMU runs as the distribution's user, to whom libvirt gives the volumes. virtlogd is not used, because a computer without systemd
	// does not run it. Virtual machines are not put in the cgroup /machine, because that would stay behind.
	"qemu.conf": "security_driver = \"none\"\nstdio_handler = \"file\"\nremember_owner = 0\nnamespaces = []\ncgroup_controllers = []\n",
	"lxc.conf":  "security_driver = \"none\"\n",
}

// enter prepares the mount and network namespace that the calling process was started in.
func enter(dir string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := ownSys(); err != nil {
		return err
	}
	for place, name := range ownDirs {
		source := filepath.Join(dir, name)
		for _, d := range []string{source, place} {
			if err := os.MkdirAll(d, 0o700); err != nil {
				return err
			}
		}
		if place == libvirtFiles {
			if err := os.Chmod(source, 0o755); err != nil {
				return err
			}
		}
		if err := unix.Mount(source, place, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", place, err)
		}
	}
	if err := hideBus(dir); err != nil {
		return err
	}
	for name, text := range ownConfig {
		if err := os.WriteFile(filepath.Join("/etc/libvirt", name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return loopbackUp()
}

// hideBus hides D-Bus from libvirt. Otherwise this computer's machined would put the machines into its own cgroups, and its firewalld would
// look for their bridge in the wrong network namespace. An environment variable would not be enough: libvirt's process for a container does
// not inherit it.
func hideBus(dir string) error {
	const bus = "/run/dbus"
	if !exists(bus) {
		return nil
	}
	empty := filepath.Join(dir, "empty")
	if err := os.MkdirAll(empty, 0o700); err != nil {
		return err
	}
	if err := unix.Mount(empty, bus, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("hide %s: %w", bus, err)
	}
	return nil
}

// ownSys mounts a /sys that shows the network devices of this namespace. On a hybrid cgroup v1 computer it hides the empty unified
// hierarchy, on which libvirt 9 fails.
func ownSys() error {
	const cgroups, aside = "/sys/fs/cgroup", "/mnt"
	if err := unix.Mount(cgroups, aside, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("keep the cgroups: %w", err)
	}
	if err := unix.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
		return fmt.Errorf("mount /sys: %w", err)
	}
	if err := unix.Mount(aside, cgroups, "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("mount the cgroups: %w", err)
	}
	if _, err := os.Stat(cgroups + "/unified"); err == nil {
		if err := unix.Unmount(cgroups+"/unified", unix.MNT_DETACH); err != nil && err != unix.EINVAL {
			return fmt.Errorf("hide the unified hierarchy: %w", err)
		}
	}
	return nil
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req); err != nil {
		return fmt.Errorf("bring up lo: %w", err)
	}
	return nil
}

// processIn returns the path of the namespace file of some process in the network namespace, "" when there is none.
func processIn(netns uint64) string {
	if paths := namespaceFiles(netns); len(paths) > 0 {
		return paths[0]
	}
	return ""
}

// namespaceFiles are the namespace files of all processes in the network namespace.
func namespaceFiles(netns uint64) []string {
	found, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	cookies := map[uint64]uint64{} // by inode, so that each namespace is entered once
	return slices.DeleteFunc(found, func(path string) bool {
		var st unix.Stat_t
		if unix.Stat(path, &st) != nil {
			return true
		}
		if _, known := cookies[st.Ino]; !known {
			cookies[st.Ino], _ = namespaceCookie(path)
		}
		return netns == 0 || cookies[st.Ino] != netns
	})
}

func namespaceCookie(path string) (cookie uint64, err error) {
	nsErr := InNamespace(path, func() {
		var fd int
		if fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err == nil {
			cookie, err = unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
			_ = unix.Close(fd)
		}
	})
	return cookie, errors.Join(nsErr, err)
}

// processesIn lists the processes in the network namespace; never this one.
func processesIn(netns uint64) []int {
	var pids []int
	for _, path := range namespaceFiles(netns) {
		if pid, err := strconv.Atoi(strings.Split(path, "/")[2]); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}
