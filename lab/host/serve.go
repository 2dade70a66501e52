package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"

	"k8slab/lab/atomicfile"
	"k8slab/lab/wait"
)

// ServeArgs are the arguments that make labctl the process that holds the lab's namespaces and runs its libvirtd: see Serve.
var ServeArgs = []string{"host", "serve", "--dir"}

const (
	lockFile    = "serve.lock" // locked by the serving process for as long as it lives
	stateFile   = "serve.pid"  // PID, network namespace and forwarded port of the serving process
	serveLog    = "serve.log"
	forwardFile = "forward" // the address in the lab's network that the forwarded port leads to
	ownNetwork  = "/proc/self/ns/net"
	outsideFile = 4 // in the serving process: the network namespace of who started it
)

func lockThread() { runtime.LockOSThread() }

type state struct {
	pid   int
	netns uint64 // the network namespace's cookie: unlike its inode it is not reused before the next boot
	port  int
	boot  string // of the computer
}

func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}

func readState(dir string) (s state, err error) {
	data, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		return s, err
	}
	if n, _ := fmt.Sscan(string(data), &s.pid, &s.netns, &s.port, &s.boot); n != 4 {
		// It is written atomically, so a broken file is left of a crash of the computer. The lock tells whether a process serves.
		return state{}, fmt.Errorf("%s is damaged: %w", stateFile, fs.ErrNotExist)
	}
	if s.boot != bootID() {
		s.pid, s.netns = 0, 0
	}
	return s, nil
}

// ErrStarting says that the lab's own daemon does not answer yet.
var ErrStarting = errors.New("the lab's libvirt daemon is just starting")

// servePID is the process that holds the namespaces of the lab's own daemon; fs.ErrNotExist when none does.
func servePID(dir string) (int, error) {
	lock := flock.New(filepath.Join(dir, lockFile))
	defer func() { _ = lock.Close() }()
	if _, err := os.Stat(dir); err != nil {
		return 0, fmt.Errorf("no libvirt daemon of the lab's own: %w", err)
	}
	free, err := lock.TryLock()
	if err != nil {
		return 0, err
	}
	if free {
		return 0, fmt.Errorf("no libvirt daemon of the lab's own runs: %w", fs.ErrNotExist)
	}
	s, err := readState(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, ErrStarting
	}
	return s.pid, err
}

// ForwardPort is the port on this computer's loopback that leads to the address set by Forward; 0 without an own daemon.
func ForwardPort(dir string) int {
	s, err := readState(dir)
	if err != nil {
		return 0
	}
	return s.port
}

// Forward sets where the forwarded port leads, as host:port in the lab's network.
func Forward(dir, address string) error {
	return atomicfile.Write(filepath.Join(dir, forwardFile), atomicfile.Private, []byte(address))
}

// start runs labctl itself as the lab's serving process, detached and in the lab's scope, and waits until its libvirtd answers.
func start(ctx context.Context, dir, scope string) error {
	if os.Geteuid() != 0 {
		return errors.New("no libvirt daemon runs on this computer and starting one needs root; run the command with sudo, or start libvirtd")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	old, err := readState(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Machines outlive their serving process. Then the new one serves their network namespace.
	survivor := ""
	if old.netns != 0 {
		survivor = processIn(old.netns)
	}
	if survivor == "" { // nothing of an earlier run lives, so the files in run/ are stale
		if err := os.RemoveAll(filepath.Join(dir, "run")); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, stateFile)); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(dir, serveLog), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: old.port})
	if err != nil && old.port != 0 { // taken meanwhile
		listener, err = net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	}
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	socket, err := listener.File()
	if err != nil {
		return err
	}
	defer func() { _ = socket.Close() }()
	outside, err := os.Open(ownNetwork)
	if err != nil {
		return err
	}
	defer func() { _ = outside.Close() }()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	argv := append(append([]string{self}, ServeArgs...), dir)
	flags := uintptr(syscall.CLONE_NEWNS)
	if survivor == "" {
		flags |= syscall.CLONE_NEWNET
	} else {
		argv = append([]string{"nsenter", "--net=" + survivor}, argv...)
	}
	leaf, err := joinLeaf(scope)
	if err != nil {
		return err
	}
	defer func() { _ = leaf.Close() }()
	argv = inScope(argv, scope)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.ExtraFiles = []*os.File{socket, outside}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: flags}
	if leaf != nil {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(leaf.Fd())
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the lab's libvirtd: %w", err)
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	return wait.For(ctx, "the lab's own libvirtd to answer", 30*time.Second, 20*time.Millisecond, func(context.Context) error {
		select {
		case <-exited:
			text, _ := os.ReadFile(log.Name())
			return wait.Hopeless(fmt.Errorf("it exited: %s", lastLine(string(text))))
		default:
		}
		if _, err := readState(dir); err != nil {
			return err
		}
		if !answers(filepath.Join(dir, "run", "libvirt-sock")) {
			return errors.New("its socket does not answer yet")
		}
		return nil
	})
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// Serve holds the namespaces that it was started in, runs libvirtd there and forwards connections of the listener (file descriptor 3)
// into the network, and names that the lab asks for to the network that file descriptor 4 is of, until it gets SIGTERM or libvirtd ends. Killed, it takes libvirtd with it; machines and network stay.
func Serve(dir string) error {
	lock := flock.New(filepath.Join(dir, lockFile))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second) // another labctl that checks the lock holds it for a moment
	defer cancel()
	if _, err := lock.TryLockContext(ctx, 5*time.Millisecond); err != nil {
		return fmt.Errorf("another process serves this lab: %w", err)
	}
	defer func() { _ = lock.Close() }() // also keeps the garbage collector from closing, and so unlocking, it
	inherited := os.NewFile(3, "forward")
	listener, err := net.FileListener(inherited) // one that no program started here inherits
	if err := errors.Join(err, inherited.Close()); err != nil {
		return fmt.Errorf("no listener to forward: %w", err)
	}
	if err := errors.Join(enterLeaf(), enter(dir)); err != nil {
		return err
	}
	netns, err := namespaceCookie(ownNetwork)
	if err != nil {
		return err
	}
	unix.CloseOnExec(outsideFile)
	if err := relayNames(fmt.Sprintf("/proc/self/fd/%d", outsideFile)); err != nil {
		return fmt.Errorf("relay names: %w", err)
	}
	go forward(listener, filepath.Join(dir, forwardFile))
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	lockThread() // Pdeathsig follows the thread that started the child
	cmd := exec.Command("libvirtd", "--config", "/etc/libvirt/libvirtd.conf", "--pid-file", "/run/libvirt/libvirtd.pid")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return err
	}
	text := fmt.Sprintf("%d %d %d %s\n", os.Getpid(), netns, listener.Addr().(*net.TCPAddr).Port, bootID())
	if err := atomicfile.Write(filepath.Join(dir, stateFile), atomicfile.Private, []byte(text)); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return fmt.Errorf("libvirtd ended: %w", err)
	case <-stop:
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			_ = cmd.Process.Kill()
		}
		return nil
	}
}

// forward connects each connection to the address that the file names at that moment.
func forward(listener net.Listener, file string) {
	for {
		in, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = in.Close() }()
			address, err := os.ReadFile(file)
			if err != nil {
				return
			}
			out, err := net.DialTimeout("tcp", string(address), 10*time.Second)
			if err != nil {
				return
			}
			defer func() { _ = out.Close() }()
			go func() { _, _ = io.Copy(out, in); _ = out.(*net.TCPConn).CloseWrite() }()
			_, _ = io.Copy(in, out)
		}()
	}
}

// Stop ends the lab's own daemon and everything that still lives in its network namespace. Then it empties the daemon's directory, but does
// not remove it: its existence says that the lab has a daemon of its own.
func Stop(ctx context.Context, dir string) error {
	if err := removeLink(ctx, dir); err != nil {
		return fmt.Errorf("uplink of the lab's network: %w", err)
	}
	s, err := readState(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return empty(dir)
	}
	if err != nil {
		return err
	}
	signalNow := syscall.SIGTERM
	err = wait.For(ctx, "the lab's libvirtd and network to end", 20*time.Second, 50*time.Millisecond, func(context.Context) error {
		pids := processesIn(s.netns)
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, signalNow)
		}
		signalNow = syscall.SIGKILL
		return fmt.Errorf("%d processes are left in its namespace: %v", len(pids), pids)
	})
	if err != nil {
		return err
	}
	return empty(dir)
}

func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}
