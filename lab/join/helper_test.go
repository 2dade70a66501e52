package join

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8slab/lab/inventory"
)

const (
	testMachineID = "0123456789abcdef0123456789abcdef"
	testUUID      = "4c4c4544-0031-3510-8052-b4c04f4a4e31"
)

// fakeMachine is a directory tree, a table of programs' answers and a table of addresses: a healthy node of the lab until a test breaks it.
type fakeMachine struct {
	Machine
	t testing.TB

	mu      sync.Mutex
	answers map[string]func() (string, error) // by the argv, or its first words
	ran     []string
	hosts   map[string]string // where an address really listens
}

func newFakeMachine(t testing.TB) *fakeMachine {
	t.Helper()
	f := newMachine(t)
	f.healthy()
	return f
}

// newMachine makes the tree of a Linux with kubeadm. Its path is short: a unix socket's may have 108 bytes.
func newMachine(t testing.TB) *fakeMachine {
	t.Helper()
	root, err := os.MkdirTemp("", "j")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	f := &fakeMachine{t: t, answers: map[string]func() (string, error){}, hosts: map[string]string{}}
	f.Machine = Machine{
		Root: root, Run: f.run, Dial: f.dial, Now: time.Now,
		Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		},
		Space: func(string) (Space, error) {
			return Space{Bytes: 40 << 30, FreeBytes: 30 << 30, Inodes: 1000, FreeInodes: 900}, nil
		},
		Environ: func() []string { return []string{"PATH=/usr/bin", "HOME=/root"} },
	}
	f.linux()
	return f
}

func (f *fakeMachine) linux() {
	for path, text := range map[string]string{
		"/etc/machine-id":                               testMachineID + "\n",
		"/etc/fstab":                                    "/dev/vda1 / ext4 defaults 0 1\n",
		"/proc/meminfo":                                 "MemTotal:        4030332 kB\nMemFree:         1030332 kB\n",
		"/proc/swaps":                                   "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n",
		"/proc/sys/kernel/hostname":                     "w1\n",
		"/proc/sys/kernel/osrelease":                    "6.1.0-25-amd64\n",
		"/proc/sys/net/ipv4/ip_forward":                 "1\n",
		"/proc/sys/net/bridge/bridge-nf-call-iptables":  "1\n",
		"/proc/sys/net/bridge/bridge-nf-call-ip6tables": "1\n",
		"/proc/net/fib_trie":                            fibTrie,
		"/proc/net/tcp":                                 tcpHeading,
		"/proc/filesystems":                             "nodev\toverlay\n\text4\n",
		"/sys/class/dmi/id/product_uuid":                testUUID + "\n",
		"/sys/devices/system/cpu/online":                "0-3\n",
		"/sys/fs/cgroup/cgroup.controllers":             "cpuset cpu io memory hugetlb pids rdma misc\n",
		"/sys/module/overlay/refcnt":                    "1\n",
	} {
		f.write(path, text)
	}
	for _, program := range []string{"kubeadm", "kubelet", "mount", "losetup", "cp"} {
		f.program("/usr/bin/" + program)
	}
	f.answer("ip route show match", "10.30.0.0/24 dev eth0 proto kernel scope link \n")
	f.answer("systemctl show-environment", "LANG=C.UTF-8\nPATH=/usr/local/sbin:/usr/bin\n")
	f.answer("/usr/bin/kubeadm version", "v1.36.3\n")
	f.answer("/usr/bin/kubelet --version", "Kubernetes v1.36.3\n")
}

// healthy makes it a node of the lab.
func (f *fakeMachine) healthy() {
	f.write("/sys/module/br_netfilter/refcnt", "1\n")
	f.write("/sys/module/vxlan/refcnt", "1\n")
	f.write(inventory.Path, "{}\n")
	f.program("/usr/bin/labnode")
	for _, plugin := range []string{"bridge", "flannel", "host-local", "loopback", "portmap"} {
		f.program(cniPlugins + "/" + plugin)
	}
	for _, file := range []string{packagedDropIn, "/etc/cni/net.d/10-flannel.conflist", containerdConfig} {
		f.write(file, strings.ReplaceAll(labFile(f.t, file), "PAUSE_IMAGE", "example.com/pause:3.10.2"))
	}
	f.answer("systemctl show kubelet.service", showUnits(kubeletUnit, containerdUnit))
	f.answer("journalctl", "starting containerd\nload plugin\ncontainerd successfully booted")
}

// labFile is what the lab's own nodes have at the path.
func labFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../image/files", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func showUnits(blocks ...string) string { return strings.Join(blocks, "\n") }

// with changes one property of a unit.
func with(unit, property, value string) string {
	var out strings.Builder
	for line := range strings.Lines(unit) {
		if strings.HasPrefix(line, property+"=") {
			line = property + "=" + value + "\n"
		}
		out.WriteString(line)
	}
	return out.String()
}

func (f *fakeMachine) write(path, text string) {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Dir(f.Path(path)), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(f.Path(path), []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fakeMachine) program(path string) {
	f.t.Helper()
	f.write(path, "#!/bin/sh\n")
	if err := os.Chmod(f.Path(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fakeMachine) remove(paths ...string) {
	f.t.Helper()
	for _, path := range paths {
		if err := os.RemoveAll(f.Path(path)); err != nil {
			f.t.Fatal(err)
		}
	}
}

// listen makes a process listen on a port, as the kernel shows it.
func (f *fakeMachine) listen(port, pid int, program string) {
	f.t.Helper()
	inode := 70000 + port
	table, _ := f.Read("/proc/net/tcp6")
	if table == "" {
		table = tcpHeading
	}
	f.write("/proc/net/tcp6", table+fmt.Sprintf("   0: %032X:%04X %032X:0000 0A 00000000:00000000 00:00000000 00000000     0        0 %d 1 0 100 0 0 10 0\n", 0, port, 0, inode))
	f.write(fmt.Sprintf("/proc/%d/comm", pid), program+"\n")
	fd := f.Path(fmt.Sprintf("/proc/%d/fd/%d", pid, port))
	if err := os.MkdirAll(filepath.Dir(fd), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Symlink(fmt.Sprintf("socket:[%d]", inode), fd); err != nil {
		f.t.Fatal(err)
	}
}

// answer makes every program run that begins with these words print the text.
func (f *fakeMachine) answer(argv, out string) {
	f.does(argv, func() (string, error) { return out, nil })
}

func (f *fakeMachine) does(argv string, act func() (string, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[argv] = act
}

// run answers what it was told, the longest match first, and refuses the rest.
func (f *fakeMachine) run(ctx context.Context, argv ...string) (string, error) {
	line := strings.Join(argv, " ")
	f.mu.Lock()
	f.ran = append(f.ran, line)
	best := ""
	for known := range f.answers {
		if (line == known || strings.HasPrefix(line, known+" ")) && len(known) > len(best) {
			best = known
		}
	}
	act := f.answers[best]
	f.mu.Unlock()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if act == nil {
		f.t.Errorf("unexpected program %q", line)
		return "", exec.ErrNotFound
	}
	return act()
}

// changed are the programs that were run and are not questions.
func (f *fakeMachine) changed() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.ran), func(line string) bool {
		return slices.ContainsFunc([]string{"systemctl show", "journalctl", "nft --json list", "iptables-save", "iptables-legacy-save",
			"/usr/bin/kubeadm version", "/usr/bin/kubelet --version", "ip route show"},
			func(question string) bool { return strings.HasPrefix(line, question) })
	})
}

func (f *fakeMachine) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	if network == "unix" {
		return d.DialContext(ctx, network, address)
	}
	f.mu.Lock()
	to, ok := f.hosts[address]
	f.mu.Unlock()
	switch {
	case !ok:
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case to == "silent":
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
	case to == "no route":
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}
	}
	return d.DialContext(ctx, network, to)
}

// host says where an address really listens.
func (f *fakeMachine) host(address, to string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hosts[address] = to
}

// digest is a sum over every path, mode, link and content of the tree. A socket's inode counts by its name.
func (f *fakeMachine) digest() string {
	f.t.Helper()
	sum := sha256.New()
	err := filepath.WalkDir(f.Root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(sum, path, info.Mode())
		switch {
		case info.Mode().IsRegular():
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintln(sum, len(text), string(text))
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			fmt.Fprintln(sum, target)
		}
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

func find(checks []Check, id CheckID) Check {
	i := slices.IndexFunc(checks, func(c Check) bool { return c.ID == id })
	if i < 0 {
		return Check{ID: id, Evidence: "no such check"}
	}
	return checks[i]
}
