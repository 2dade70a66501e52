package host

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8slab/lab/command"
)

// aNetwork is a network namespace of the test's own, held by a process.
func aNetwork(t *testing.T) *Host {
	t.Helper()
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	return &Host{Own: true, netns: fmt.Sprintf("/proc/%d/ns/net", cmd.Process.Pid), pid: cmd.Process.Pid}
}

// in runs commands in the namespace, one a line.
func (h *Host) in(t *testing.T, lines string) (out string) {
	t.Helper()
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		text, err := command.Run(t.Context(), h.inside(strings.Fields(line)...)...)
		if err != nil {
			t.Fatal(err)
		}
		out += text
	}
	return out
}

// computerNetwork is all that EnsureUplink may change.
func (h *Host) computerNetwork(t *testing.T) string {
	return h.in(t, "ip -brief -4 address\nip route\niptables -t nat -S\niptables -S")
}

// listen answers on port 80 of the namespace with the address of who asks.
func (h *Host) listen(t *testing.T) {
	t.Helper()
	var l net.Listener
	var err error
	if nsErr := InNamespace(h.netns, func() { l, err = net.Listen("tcp4", ":80") }); err != nil || nsErr != nil {
		t.Fatal(err, nsErr)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = fmt.Fprint(c, c.RemoteAddr().(*net.TCPAddr).IP)
			_ = c.Close()
		}
	}()
}

// asks reads what a listener says.
func (h *Host) asks(t *testing.T, address, from string) (said string, err error) {
	d := net.Dialer{Timeout: 3 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	var c net.Conn
	if nsErr := InNamespace(h.netns, func() { c, err = d.DialContext(t.Context(), "tcp4", address+":80") }); nsErr != nil || err != nil {
		return "", errors.Join(nsErr, err)
	}
	defer func() { _ = c.Close() }()
	var b bytes.Buffer
	_, err = b.ReadFrom(c)
	return b.String(), err
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
}

// The internet, a computer, and a lab: three namespaces of the test's own.
func TestUplink(t *testing.T) {
	needRoot(t)
	internet, here, lab := aNetwork(t), aNetwork(t), aNetwork(t)
	here.in(t, fmt.Sprintf("ip link set lo up\nip link add up0 type veth peer name in0 netns %d\nip address add 192.0.2.2/24 dev up0\nip link set up0 up\nip route add default via 192.0.2.1", internet.pid))
	internet.in(t, "ip address add 192.0.2.1/24 dev in0\nip link set in0 up\nip route add 10.30.0.0/24 via 192.0.2.2")
	internet.listen(t)
	lab.in(t, "ip link set lo up\nip link add bridge type bridge\nip address add 10.30.0.1/24 dev bridge\nip link set bridge up")
	lab.listen(t)
	before := here.computerNetwork(t)

	dir, changes := t.TempDir(), 0
	ensure := func(nat bool) {
		t.Helper()
		u := Uplink{ID: "c0ffee", CIDR: netip.MustParsePrefix("10.30.0.0/24"), NAT: nat, Mutated: func(string) { changes++ }}
		var err error
		if nsErr := InNamespace(here.netns, func() { err = lab.EnsureUplink(t.Context(), dir, u) }); nsErr != nil || err != nil {
			t.Fatal(nsErr, err)
		}
	}
	remove := func() {
		t.Helper()
		var err error
		if nsErr := InNamespace(here.netns, func() { err = Stop(t.Context(), dir) }); nsErr != nil || err != nil {
			t.Fatal(nsErr, err)
		}
		if after := here.computerNetwork(t); after != before {
			t.Errorf("left behind:\n%s\nbefore:\n%s", after, before)
		}
	}

	ensure(false)
	ensure(false)
	if changes != 1 {
		t.Errorf("%d changes of two runs", changes)
	}
	if _, err := here.asks(t, "10.30.0.1", ""); !errors.Is(err, syscall.EHOSTUNREACH) && !errors.Is(err, syscall.ENETUNREACH) {
		t.Errorf("a lab without an uplink: %v", err)
	}
	remove()

	here.in(t, "ip route add 10.0.0.0/8 via 192.0.2.1") // a VPN, which has machines there
	ensure(false)
	if changes != 1 {
		t.Error("the lab's network took addresses of another")
	}
	here.in(t, "ip route delete 10.0.0.0/8")
	remove()

	changes = 0
	ensure(true)
	ensure(true)
	if changes != 1 {
		t.Errorf("%d changes of two runs", changes)
	}
	for _, from := range []string{"", "10.30.0.1"} {
		if as, err := lab.asks(t, "192.0.2.1", from); err != nil || as != "192.0.2.2" {
			t.Errorf("the lab asks the internet as %q, %v", as, err)
		}
	}
	if _, err := here.asks(t, "10.30.0.1", ""); err != nil {
		t.Errorf("the computer asks the lab: %v", err)
	}
	if _, err := internet.asks(t, "10.30.0.1", ""); err == nil {
		t.Error("the internet reaches the lab")
	}
	here.in(t, "iptables -t filter -F FORWARD") // a firewall that starts anew
	ensure(true)
	if changes != 2 {
		t.Errorf("%d changes after the rules were lost", changes)
	}
	remove()
	remove() // again, as after an interruption
	if _, err := readLink(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestLinksOfTwoLabs(t *testing.T) {
	a, err := Uplink{ID: "a", NAT: true}.newLink()
	b, otherErr := Uplink{ID: "b", NAT: true}.newLink()
	if err != nil || otherErr != nil || a.Device == b.Device || len(a.Device) > 15 {
		t.Errorf("%+v, %+v, %v, %v", a, b, err, otherErr)
	}
	if !a.Ours.Contains(a.Lab) || a.Ours.Addr() == a.Lab || !netip.MustParsePrefix("169.254.64.0/18").Contains(a.Lab) {
		t.Errorf("%+v", a)
	}
}
