package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8slab/lab/atomicfile"
	"k8slab/lab/command"
)

// Uplink is how the network of a lab with its own daemon meets this computer's. Without one, this computer has no route to the lab: a packet
// to a node's address must not leave by the default route.
type Uplink struct {
	ID      string            // the lab's UUID
	CIDR    netip.Prefix      // the machines' network
	NAT     bool              // the machines reach what this computer reaches, with its address, and it reaches them
	Mutated func(what string) // may be nil
}

const (
	uplinkFile   = "uplink" // what this computer's network has of the lab's: see link
	uplinkDevice = "uplink" // in the lab's namespace
)

// link is what Ensure makes in this computer's network.
type link struct {
	Device string       // the computer's end of the pair of devices, "" for a route to nowhere
	CIDR   netip.Prefix // the machines' network
	Ours   netip.Prefix // the address of Device
	Lab    netip.Addr   // the address of the other end
	Metric uint32       // of a route to nowhere: several labs may have the same network
}

// EnsureUplink makes the uplink of the lab whose daemon has the directory. It changes nothing if it is there. Stop removes it.
func (h *Host) EnsureUplink(ctx context.Context, dir string, u Uplink) error {
	l, err := readLink(dir)
	if errors.Is(err, fs.ErrNotExist) {
		// Where this computer has another network, that one's machines stay reachable, and nothing leaves by the default route.
		if !u.NAT && slices.ContainsFunc(Routes(), u.CIDR.Overlaps) {
			return nil
		}
		l, err = u.newLink()
	}
	if err != nil {
		return err
	}
	if l.present(ctx, h) {
		return nil
	}
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if u.Mutated != nil {
		u.Mutated("network of this computer: uplink of " + l.CIDR.String())
	}
	if err := atomicfile.Write(filepath.Join(dir, uplinkFile), atomicfile.Private, text); err != nil { // first: it leads to what is to be removed
		return err
	}
	if err := l.make(ctx, h); err != nil {
		return fmt.Errorf("uplink of the lab's network: %w", err)
	}
	return nil
}

func readLink(dir string) (l link, err error) {
	text, err := os.ReadFile(filepath.Join(dir, uplinkFile))
	if err != nil {
		return l, err
	}
	return l, json.Unmarshal(text, &l)
}

// newLink chooses names and addresses that no other lab has.
func (u Uplink) newLink() (link, error) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(u.ID))
	hash := h.Sum32()
	l := link{CIDR: u.CIDR, Metric: hash}
	if !u.NAT {
		return l, nil
	}
	l.Device = fmt.Sprintf("k8slab%08xu", hash) // Linux allows 15 characters
	taken, err := net.InterfaceAddrs()
	if err != nil {
		return l, err
	}
	for i := range uint32(1 << 12) {
		n := (hash + i) % (1 << 12) // of 64 times 64 networks of four addresses; clouds have their servers in 169.254.169.0/24
		first := netip.AddrFrom4([4]byte{169, 254, 64 + byte(n>>6), byte(n&63) * 4})
		l.Ours, l.Lab = netip.PrefixFrom(first.Next(), 30), first.Next().Next()
		if !slices.ContainsFunc(taken, func(a net.Addr) bool {
			p, err := netip.ParsePrefix(a.String())
			return err == nil && p.Overlaps(l.Ours)
		}) {
			return l, nil
		}
	}
	return l, errors.New("no free network of four addresses in 169.254.64.0/18 for it")
}

// rules are what iptables has of the lab.
func (l link) rules() [][]string {
	comment := []string{"-m", "comment", "--comment", l.Device}
	rule := func(table, chain string, rest ...string) []string {
		return slices.Concat([]string{table, chain}, rest, comment)
	}
	return [][]string{
		rule("nat", "POSTROUTING", "-s", l.CIDR.String(), "!", "-d", l.CIDR.String(), "-j", "MASQUERADE"),
		rule("nat", "POSTROUTING", "-s", l.Lab.String(), "!", "-o", l.Device, "-j", "MASQUERADE"), // of programs in the lab's namespace
		// Each is inserted as the first rule of all, because other firewalls drop, as Docker's does. The last of these is the first then.
		rule("filter", "FORWARD", "-o", l.Device, "-j", "DROP"), // from other computers
		rule("filter", "FORWARD", "-i", l.Device, "-j", "ACCEPT"),
		rule("filter", "FORWARD", "-o", l.Device, "-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED", "-j", "ACCEPT"),
	}
}

// iptables is the command that does something with a rule.
func iptables(do string, rule []string) []string {
	return append([]string{"iptables", "--wait", "-t", rule[0], do}, rule[1:]...)
}

func (l link) nowhere(do string) []string {
	return []string{"ip", "route", do, "unreachable", l.CIDR.String(), "metric", fmt.Sprint(l.Metric)}
}

// forwarding is what the kernel says about packets that are another's, in the namespace of who reads it.
const forwarding = "/proc/sys/net/ipv4/ip_forward"

// present tells whether all of the link is there.
func (l link) present(ctx context.Context, h *Host) bool {
	routes, err := command.Run(ctx, "ip", "route", "show", l.CIDR.String(), "metric", fmt.Sprint(l.metric()))
	if err != nil || strings.TrimSpace(routes) == "" {
		return false
	}
	if l.Device == "" {
		return true
	}
	there := false
	err = InNamespace(h.netns, func() { // a new namespace lacks it
		_, err := net.InterfaceByName(uplinkDevice)
		there = err == nil
	})
	if on, readErr := os.ReadFile(forwarding); err != nil || readErr != nil || !there || strings.TrimSpace(string(on)) != "1" {
		return false
	}
	for _, rule := range l.rules() {
		if _, err := command.Run(ctx, iptables("-C", rule)...); err != nil {
			return false
		}
	}
	return true
}

// metric is that of the route to the machines.
func (l link) metric() uint32 {
	if l.Device != "" {
		return 0
	}
	return l.Metric
}

// make makes what is missing.
func (l link) make(ctx context.Context, h *Host) error {
	if l.Device == "" {
		_, err := command.Run(ctx, l.nowhere("replace")...)
		return err
	}
	if err := os.WriteFile(forwarding, []byte("1"), 0o644); err != nil {
		return fmt.Errorf("have this computer forward packets: %w", err)
	}
	commands := [][]string{
		{"ip", "address", "replace", l.Ours.String(), "dev", l.Device},
		{"ip", "link", "set", l.Device, "up"},
		h.inside("ip", "address", "replace", netip.PrefixFrom(l.Lab, 30).String(), "dev", uplinkDevice),
		h.inside("ip", "link", "set", uplinkDevice, "up"),
		h.inside("ip", "route", "replace", "default", "via", l.Ours.Addr().String()),
		{"ip", "route", "replace", l.CIDR.String(), "via", l.Lab.String(), "dev", l.Device},
	}
	if _, err := net.InterfaceByName(l.Device); err != nil { // it ends with the lab's namespace
		add := []string{"ip", "link", "add", l.Device, "type", "veth", "peer", "name", uplinkDevice, "netns", fmt.Sprint(h.pid)}
		commands = slices.Insert(commands, 0, add)
	}
	for _, rule := range l.rules() {
		if _, err := command.Run(ctx, iptables("-C", rule)...); err != nil {
			commands = append(commands, iptables("-I", rule))
		}
	}
	for _, argv := range commands {
		if _, err := command.Run(ctx, argv...); err != nil {
			return err
		}
	}
	return nil
}

// inside is the argv of a command in the lab's network namespace.
func (h *Host) inside(argv ...string) []string {
	return append([]string{"nsenter", "--net=" + h.netns, "--"}, argv...)
}

// removeLink removes what EnsureUplink made in this computer's network.
func removeLink(ctx context.Context, dir string) error {
	l, err := readLink(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if l.Device == "" {
		routes, err := command.Run(ctx, "ip", "route", "show", l.CIDR.String(), "metric", fmt.Sprint(l.Metric))
		if err == nil && strings.TrimSpace(routes) != "" {
			_, err = command.Run(ctx, l.nowhere("delete")...)
		}
		return err
	}
	for _, rule := range l.rules() {
		if _, err := command.Run(ctx, iptables("-C", rule)...); err != nil {
			continue
		}
		if _, err := command.Run(ctx, iptables("-D", rule)...); err != nil {
			return err
		}
	}
	if _, err := net.InterfaceByName(l.Device); err == nil { // and its routes
		_, err = command.Run(ctx, "ip", "link", "delete", l.Device)
		if _, left := net.InterfaceByName(l.Device); left == nil {
			return err
		}
	}
	return nil
}
