package host

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestNameServers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(file, []byte("# nameserver 192.0.2.9\nsearch lan\nnameserver 192.0.2.1\nnameserver\t2001:db8::1 \nnameserver"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := nameServers(file); !slices.Equal(got, []string{"192.0.2.1", "2001:db8::1"}) {
		t.Errorf("%q", got)
	}
	if got := nameServers(file + ".none"); got != nil {
		t.Errorf("%q", got)
	}
}

// The first server does not answer; the second says the question again, with its kind of connection before it.
func TestRelay(t *testing.T) {
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = udp.Close(), tcp.Close() }()
	r := relay{slots: make(chan struct{}, 2), servers: func() []string { return []string{"192.0.2.1", "192.0.2.2"} }}
	r.dial = func(_ context.Context, network, address string) (net.Conn, error) {
		if address != "192.0.2.2:53" {
			return nil, errors.New("no route to " + address)
		}
		ours, theirs := net.Pipe()
		go func() {
			defer func() { _ = theirs.Close() }()
			question := make([]byte, 100)
			n, _ := theirs.Read(question)
			_, _ = theirs.Write(append([]byte(network+" "), question[:n]...))
		}()
		return ours, nil
	}
	go r.packets(udp)
	go r.connections(tcp)
	for _, in := range []net.Addr{udp.LocalAddr(), tcp.Addr()} {
		conn, err := net.Dial(in.Network(), in.String())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err := conn.Write([]byte("who")); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 100)
		n, err := conn.Read(answer)
		if got := string(answer[:n]); got != in.Network()+" who" || err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("%s: %q, %v", in.Network(), got, err)
		}
		_ = conn.Close()
	}
	r.servers = func() []string { return nil }
	if got := r.ask([]byte("who")); got != nil {
		t.Errorf("nobody answers %q", got)
	}
}
