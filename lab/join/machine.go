package join

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"k8slab/lab/command"
)

// Machine is the machine that is to join. Its fields are the only ways by which this package looks at it and changes it, so that tests can
// put a directory and a table of answers in its place.
type Machine struct {
	// Root is put before every path; "" is the machine itself.
	Root string
	// Run runs a program without a shell and returns its standard output. Its error unwraps to *exec.ExitError when the program ran, and to
	// exec.ErrNotFound when there is none.
	Run func(ctx context.Context, argv ...string) (string, error)
	// Feed runs a program without a shell that reads what it is given as its standard input.
	Feed func(ctx context.Context, stdin io.Reader, argv ...string) error
	// Dial opens a network connection; for "unix" the address is a path on the machine, and Root is put before it by the caller.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Lookup resolves a host name as the machine's programs would.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Space measures the file system that holds a path (Root is already in it).
	Space func(path string) (Space, error)
	// Environ is the environment of this process, "KEY=value" each.
	Environ func() []string
	// Now is the machine's clock.
	Now func() time.Time
	// AtLeast is the least that Patience says, for a machine that is known to be busy.
	AtLeast int
}

// Patience is by how much all time limits on the machine are multiplied; 1 is for an idle processor of its own.
func (m Machine) Patience() time.Duration {
	patience := time.Duration(max(m.AtLeast, 1))
	if m.Emulated() {
		return max(patience, 5)
	}
	return patience
}

// Emulated tells whether QEMU emulates the machine's processor. All computing then takes about ten times as long.
func (m Machine) Emulated() bool {
	info, err := m.Read("/proc/cpuinfo")
	return err == nil && strings.Contains(info, "QEMU Virtual CPU")
}

// Space is the size of a file system.
type Space struct {
	Bytes, FreeBytes   uint64 // free to ordinary users
	Inodes, FreeInodes uint64 // zero where the file system makes them as needed
	ReadOnly           bool
}

// Local is the machine that this process runs on.
func Local() Machine {
	dialer := &net.Dialer{}
	return Machine{
		Run: command.Run,
		Feed: func(ctx context.Context, stdin io.Reader, argv ...string) error {
			_, err := command.Command{Argv: argv, Stdin: stdin}.Run(ctx)
			return err
		},
		Dial: dialer.DialContext,
		Lookup: func(ctx context.Context, host string) ([]netip.Addr, error) {
			addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
			for i := range addresses { // IPv4 comes as IPv6, which no other program understands
				addresses[i] = addresses[i].Unmap()
			}
			return addresses, err
		},
		Space:   space,
		Environ: os.Environ,
		Now:     time.Now,
	}
}

func space(path string) (Space, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return Space{}, &fs.PathError{Op: "statfs", Path: path, Err: err}
	}
	block := uint64(s.Bsize)
	return Space{
		Bytes: s.Blocks * block, FreeBytes: s.Bavail * block, Inodes: s.Files, FreeInodes: s.Ffree,
		ReadOnly: s.Flags&unix.ST_RDONLY != 0,
	}, nil
}

// Path is where a path of the machine is for this process.
func (m Machine) Path(path string) string { return filepath.Join(m.Root+"/", path) }

// Exists says whether something is at the path; a dangling link counts, and so does a path that cannot be read.
func (m Machine) Exists(path string) bool {
	_, err := os.Lstat(m.Path(path))
	return !errors.Is(err, fs.ErrNotExist)
}

// Read returns a file's content.
func (m Machine) Read(path string) (string, error) {
	data, err := os.ReadFile(m.Path(path))
	return string(data), err
}

// Line returns a file's content without the white space around it, "" when it cannot be read.
func (m Machine) Line(path string) string {
	text, _ := m.Read(path)
	return strings.TrimSpace(text)
}

// List returns the names in a directory, sorted; none when it cannot be read.
func (m Machine) List(dir string) []string {
	entries, _ := os.ReadDir(m.Path(dir))
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// programDirs are where systemd's units look for programs, and so kubeadm, which runs as one.
var programDirs = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// Find returns the path of a program, "" when it is not there or not executable.
func (m Machine) Find(program string) string {
	for _, dir := range programDirs {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(m.Path(path)); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// Container says whether the machine is a container: it then has its host's kernel, memory and processors, which it cannot change.
func (m Machine) Container() bool {
	if m.Line("/run/systemd/container") != "" { // systemd writes it when it boots in one
		return true
	}
	environ, _ := m.Read("/proc/1/environ")
	for entry := range strings.SplitSeq(environ, "\x00") {
		if strings.HasPrefix(entry, "container=") && entry != "container=" {
			return true
		}
	}
	return false
}

// Hostname is the kernel's name of the machine.
func (m Machine) Hostname() string { return m.Line("/proc/sys/kernel/hostname") }
