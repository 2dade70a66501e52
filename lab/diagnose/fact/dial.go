package fact

import (
	"context"
	"encoding/hex"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// dialLimit bounds one dial. A lost first packet is sent again after a second.
const dialLimit = 1500 * time.Millisecond

const overlayPort = 8472 // flannel's VXLAN

type target struct {
	peer  Peer
	port  int
	proto string
}

// targets are the ports of its peers that a machine of the role needs, and its pods where flannel connects them.
func targets(role string, peers []Peer, flannel bool) []target {
	var all []target
	for _, p := range peers {
		ports := []int{}
		if p.Role == "control-plane" {
			ports = append(ports, 6443)
			if role == "control-plane" {
				ports = append(ports, 2379, 2380)
			}
		}
		if role == "control-plane" {
			ports = append(ports, 10250) // of kubelet, which only API servers ask
		}
		for _, port := range ports {
			all = append(all, target{p, port, "tcp"})
		}
		if flannel {
			all = append(all, target{p, overlayPort, "udp"})
		}
	}
	return all
}

// dials tries every port at once.
func (c *collector) dials(ctx context.Context) error {
	all := targets(c.o.Role, c.o.Peers, c.m.MayBeFlannel())
	results := make([]Dial, len(all))
	var wg sync.WaitGroup
	for i, t := range all {
		wg.Go(func() { results[i] = c.dialAgain(ctx, t) })
	}
	wg.Wait()
	c.set(func(n *Node) { n.Dials = results })
	return nil
}

// overlay dials kubelet of each peer at the far end of flannel's tunnel to it: an answer proves the tunnel in both directions, which no
// datagram to its port can.
func (c *collector) overlay(ctx context.Context) error {
	text, err := c.m.Read("/proc/net/route")
	if err != nil {
		return err
	}
	ends := tunnelEnds(text)
	results := make([]Dial, len(ends))
	var wg sync.WaitGroup
	for i, end := range ends {
		wg.Go(func() { results[i] = c.dialAgain(ctx, target{Peer{Name: end, IP: end}, 10250, "tcp"}) })
	}
	wg.Wait()
	c.set(func(n *Node) { n.Overlay = results })
	return nil
}

// tunnelEnds are the gateways of the routes through flannel's device, in the kernel's table: device, destination, gateway, each address in
// hexadecimal with its first byte last.
func tunnelEnds(routes string) []string {
	var ends []string
	for line := range strings.Lines(routes) {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] != "flannel.1" {
			continue
		}
		raw, err := hex.DecodeString(f[2])
		if err == nil && len(raw) == 4 && f[2] != "00000000" {
			ends = append(ends, net.IPv4(raw[3], raw[2], raw[1], raw[0]).String())
		}
	}
	return ends
}

// moreDials is how many dials follow one that timed out, all at once. On a link that loses every fifth packet a dial fails one time in 25: a
// second alone would leave a false alarm in one of 25 diagnoses, with their two dozen dials.
const moreDials = 3

// dialAgain dials again after a time-out, which a link that loses packets or a loaded computer may have made.
func (c *collector) dialAgain(ctx context.Context, t target) Dial {
	d := c.dial(ctx, t)
	if d.Result != "timeout" {
		return d
	}
	more := make([]Dial, moreDials)
	var wg sync.WaitGroup
	for i := range more {
		wg.Go(func() { more[i] = c.dial(ctx, t) })
	}
	wg.Wait()
	if i := slices.IndexFunc(more, func(d Dial) bool { return d.Result != "timeout" }); i >= 0 {
		return more[i]
	}
	return d
}

func (c *collector) dial(ctx context.Context, t target) Dial {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	began := time.Now()
	conn, err := c.m.Dial(ctx, t.proto, net.JoinHostPort(t.peer.IP, strconv.Itoa(t.port)))
	d := Dial{To: t.peer.Name, Port: t.port, Proto: t.proto, Result: "open"}
	if err == nil {
		if t.proto == "udp" {
			d.Result, err = "unknown", probeUDP(conn)
		}
		_ = conn.Close()
	}
	d.Millis = float64(time.Since(began).Microseconds()) / 1000
	if err != nil {
		d.Result = dialResult(err)
	}
	return d
}

// probeUDP sends an empty datagram and waits a moment for the kernel's answer that nobody listens. No answer is no error.
func probeUDP(conn net.Conn) error {
	if _, err := conn.Write(nil); err != nil {
		return err
	}
	if err := conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		return err
	}
	_, err := conn.Read(make([]byte, 1))
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return nil
	}
	return err
}

func dialResult(err error) string {
	var timeout net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	}
	return "unreachable"
}
