package host

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"
)

// Resolver is where a lab with its own daemon has the names of others looked up: an address of the lab's own loopback, which only libvirt's
// dnsmasq asks.
var Resolver = netip.MustParseAddr("127.0.0.2")

const (
	answerTime   = 4 * time.Second // dnsmasq's clients ask again after five
	mostQuestion = 64              // at the same time
	longestName  = 64 << 10        // bytes of a question or an answer
)

// relay passes questions of the lab on to this computer's DNS servers. Those may be reached from this computer alone, such as
// systemd-resolved's on its loopback.
type relay struct {
	dial    func(ctx context.Context, network, address string) (net.Conn, error) // in this computer's network
	servers func() []string                                                      // IP addresses
	slots   chan struct{}
}

// relayNames serves in the namespace of its caller until the process ends. outside is the file of this computer's network namespace.
func relayNames(outside string) error {
	address := net.JoinHostPort(Resolver.String(), "53")
	udp, err := net.ListenPacket("udp4", address)
	if err != nil {
		return err
	}
	tcp, err := net.Listen("tcp4", address)
	if err != nil {
		return errors.Join(err, udp.Close())
	}
	there := Host{netns: outside}
	r := relay{dial: there.Dial, servers: func() []string { return nameServers("/etc/resolv.conf") }, slots: make(chan struct{}, mostQuestion)}
	go r.packets(udp)
	go r.connections(tcp)
	return nil
}

// nameServers are those of a resolv.conf. A file that cannot be read has none.
func nameServers(file string) (all []string) {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "nameserver" {
			all = append(all, f[1])
		}
	}
	return all
}

func (r relay) packets(in net.PacketConn) {
	buffer := make([]byte, longestName)
	for {
		n, from, err := in.ReadFrom(buffer)
		if err != nil {
			return
		}
		question := append([]byte(nil), buffer[:n]...)
		r.slots <- struct{}{}
		go func() {
			defer func() { <-r.slots }()
			if answer := r.ask(question); answer != nil {
				_, _ = in.WriteTo(answer, from)
			}
		}()
	}
}

// ask asks one server after another. nil: none answers, and whoever asked asks again.
func (r relay) ask(question []byte) []byte {
	servers := r.servers()
	for _, server := range servers {
		ctx, cancel := context.WithTimeout(context.Background(), answerTime/time.Duration(len(servers)))
		answer, err := r.askOne(ctx, server, question)
		cancel()
		if err == nil {
			return answer
		}
	}
	return nil
}

func (r relay) askOne(ctx context.Context, server string, question []byte) ([]byte, error) {
	conn, err := r.dial(ctx, "udp", net.JoinHostPort(server, "53"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	end, _ := ctx.Deadline()
	_ = conn.SetDeadline(end)
	if _, err := conn.Write(question); err != nil {
		return nil, err
	}
	answer := make([]byte, longestName)
	n, err := conn.Read(answer)
	return answer[:n], err
}

// connections relays what is too long for a packet.
func (r relay) connections(in net.Listener) {
	for {
		conn, err := in.Accept()
		if err != nil {
			return
		}
		r.slots <- struct{}{}
		go func() {
			defer func() { <-r.slots }()
			defer func() { _ = conn.Close() }()
			for _, server := range r.servers() {
				ctx, cancel := context.WithTimeout(context.Background(), answerTime)
				out, err := r.dial(ctx, "tcp", net.JoinHostPort(server, "53"))
				cancel()
				if err == nil {
					both(conn, out)
					return
				}
			}
		}()
	}
}

// both copies in both directions until the far end closes, or nothing comes for too long.
func both(in, out net.Conn) {
	defer func() { _ = out.Close() }()
	for _, c := range []net.Conn{in, out} {
		_ = c.SetDeadline(time.Now().Add(2 * answerTime))
	}
	go func() { _, _ = io.Copy(out, in) }()
	_, _ = io.Copy(in, out)
}
