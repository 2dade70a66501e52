package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// nowhere is a URI that no daemon of this computer is looked for under.
const nowhere = "test:///default"

// served is a directory that some process serves, as far as its lock and state can tell.
func served(t *testing.T, state string) string {
	t.Helper()
	dir := t.TempDir()
	lock := flock.New(filepath.Join(dir, lockFile))
	if ok, err := lock.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	t.Cleanup(func() { _ = lock.Close() })
	if state != "" {
		if err := os.WriteFile(filepath.Join(dir, stateFile), []byte(state), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestConnectWithoutDaemon(t *testing.T) {
	stale := t.TempDir()
	if err := os.WriteFile(filepath.Join(stale, stateFile), []byte("4711 1 2 "+bootID()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, dir string }{
		{"missing directory", filepath.Join(t.TempDir(), "none")},
		{"empty directory", t.TempDir()},
		{"state of a process that ended", stale},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if h, err := Connect(tt.dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("got %+v, %v, want fs.ErrNotExist", h, err)
			}
		})
	}
	if _, err := os.Stat(tests[0].dir); err == nil {
		t.Error("looking made the directory")
	}
}

func TestConnectToOwnDaemon(t *testing.T) {
	dir := served(t, "4711 4026532000 33333 "+bootID()+"\n")
	if _, err := Connect(dir); !errors.Is(err, ErrStarting) {
		t.Errorf("before its socket answers: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "run", "libvirt-sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	h, err := Connect(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := Host{Own: true, Socket: filepath.Join(dir, "run", "libvirt-sock"), netns: "/proc/4711/ns/net", pid: 4711}
	if *h != want {
		t.Errorf("got %+v, want %+v", *h, want)
	}
	if got := ForwardPort(dir); got != 33333 {
		t.Errorf("forwarded port %d", got)
	}
}

// A process that has the lock and not yet written who it is must not be taken for none: a second one would clear its directory.
func TestConnectWhileStarting(t *testing.T) {
	if _, err := Connect(served(t, "")); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want an error that is not fs.ErrNotExist", err)
	}
}

// What a crash of the computer left of the file keeps nobody from starting or ending anything.
func TestBrokenState(t *testing.T) {
	for _, text := range []string{"", "nonsense\n", "1234", "1234 99 ", "1234 99 33333\n"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, stateFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Connect(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", text, err)
		}
		if err := Stop(t.Context(), dir); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%q: left %v, %v", text, left, err)
		}
	}
	dir := served(t, "nonsense\n")
	if _, err := Connect(dir); !errors.Is(err, ErrStarting) {
		t.Errorf("got %v", err)
	}
	for _, d := range []string{dir, filepath.Join(dir, "none")} {
		if got := ForwardPort(d); got != 0 {
			t.Errorf("port %d", got)
		}
	}
}

func TestNetworkSocket(t *testing.T) {
	listen := func(dir, name string) string {
		path := filepath.Join(dir, name)
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		return path
	}
	modular, one := t.TempDir(), t.TempDir()
	networks := listen(modular, "virtnetworkd-sock")
	listen(one, "virtnetworkd-sock")
	alone := filepath.Join(t.TempDir(), "virtlxcd-sock")
	tests := []struct{ name, socket, want string }{
		{"modular", filepath.Join(modular, "virtlxcd-sock"), networks},
		{"monolithic", filepath.Join(one, "libvirt-sock"), filepath.Join(one, "libvirt-sock")},
		{"modular without networks", alone, alone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := (&Host{Socket: tt.socket}).NetworkSocket(); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestEnter(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	argv := []string{"virsh", "list", "--all"}
	if got := (&Host{}).Enter(argv); !slices.Equal(got, argv) {
		t.Errorf("the computer's own: %q", got)
	}
	want := append([]string{"nsenter", "--target", "4711", "--mount", "--net", "--wd=" + dir, "--"}, argv...)
	if got := (&Host{Own: true, pid: 4711}).Enter(argv); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestForward(t *testing.T) {
	target, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = target.Close() }()
	go func() {
		for {
			conn, err := target.Accept()
			if err != nil {
				return
			}
			text, _ := io.ReadAll(conn)
			_, _ = fmt.Fprintf(conn, "got %s", text)
			_ = conn.Close()
		}
	}()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	dir := t.TempDir()
	go forward(listener, filepath.Join(dir, forwardFile))
	ask := func() string {
		conn, err := net.DialTimeout("tcp4", listener.Addr().String(), 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		_, _ = conn.Write([]byte("ping"))
		_ = conn.(*net.TCPConn).CloseWrite()
		answer, _ := io.ReadAll(conn)
		return string(answer)
	}
	if got := ask(); got != "" {
		t.Errorf("before it leads anywhere: %q", got)
	}
	if err := Forward(dir, target.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if got := ask(); got != "got ping" {
		t.Errorf("got %q", got)
	}
}

func TestStopWithoutDaemon(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "libvirt")
	if err := os.MkdirAll(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a directory without state", "an empty directory"} {
		if err := Stop(context.Background(), dir); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: %v, %v", name, left, err)
		}
	}
	if err := Stop(context.Background(), filepath.Join(dir, "none")); err != nil {
		t.Error(err)
	}
}

func TestProcessesIn(t *testing.T) {
	own, err := namespaceCookie("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(processesIn(own), os.Getpid()) {
		t.Error("it would end itself")
	}
	if path := processIn(own); path == "" {
		t.Error("no process found in this one's own namespace")
	}
	if got := processesIn(1 << 60); len(got) != 0 || processIn(1<<60) != "" {
		t.Errorf("found %v in a namespace that does not exist", got)
	}
}

func TestDial(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	conn, err := (&Host{}).Dial(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	gone := &Host{Own: true, netns: filepath.Join(t.TempDir(), "net")}
	if conn, err := gone.Dial(t.Context(), "tcp", listener.Addr().String()); conn != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a namespace that is gone: %v, %v", conn, err)
	}
}

// After a boot the same namespace number belongs to somebody else, whom Stop must not end.
func TestStateOfAnEarlierBoot(t *testing.T) {
	dir := served(t, "4711 4026532000 33333 another-boot\n")
	s, err := readState(dir)
	if err != nil || s.pid != 0 || s.netns != 0 || s.port != 33333 {
		t.Errorf("got %+v, %v", s, err)
	}
}

// FuzzState reads what may be left of the file: a damaged one is none, and none names a process of another boot.
func FuzzState(f *testing.F) {
	f.Add("4711 99 33333 " + bootID() + "\n")
	f.Add("4711 99 33333 another\n")
	f.Add("-1 x")
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, stateFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := readState(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && s.boot != bootID() && (s.pid != 0 || s.netns != 0) {
			t.Errorf("%+v, %v", s, err)
		}
	})
}
