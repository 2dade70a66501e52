package machine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// Network is the lab's network: a bridge, a name and a fixed address per node.
type Network struct {
	CIDR     netip.Prefix
	Gateway  netip.Addr
	Hosts    []Host
	Forward  Forward
	Resolver netip.Addr // is asked for names that are no node's; none: the computer's own
}

// Forward is what libvirt does with packets from the network to others, in its words: libvirt.org/formatnetwork.html.
type Forward string

// What libvirt does.
const (
	ForwardNone Forward = ""     // drops them
	ForwardNAT  Forward = "nat"  // gives them the computer's address
	ForwardOpen Forward = "open" // passes them on as they are
)

// Host is a node's reservation.
type Host struct {
	Name string
	IP   netip.Addr
}

// BridgeName is the bridge of the lab: a hash, because Linux allows 15 characters.
func (l *Lab) BridgeName() string {
	h := sha256.Sum256([]byte(l.cfg.ID))
	return "k8slab" + hex.EncodeToString(h[:4])
}

// EnsureNetwork makes the network if it is absent and starts it if it is not active.
func (l *Lab) EnsureNetwork(ctx context.Context, n Network) error {
	active, err := l.NetworkActive(ctx)
	if err != nil || active {
		return err
	}
	text, err := l.networkXML(n)
	if err != nil {
		return err
	}
	l.cfg.Mutated("libvirt start network " + l.cfg.Lab)
	return l.nets.call(ctx, "start network "+l.cfg.Lab, func(v *libvirt.Libvirt) error {
		net, err := v.NetworkDefineXML(text) // ours by its UUID, so defining again renews it
		if err != nil {
			return err
		}
		return v.NetworkCreate(net)
	})
}

// NetworkActive tells whether the network runs. A network of its name that is not this lab's is an error.
func (l *Lab) NetworkActive(ctx context.Context) (active bool, err error) {
	err = l.nets.call(ctx, "look up network "+l.cfg.Lab, func(v *libvirt.Libvirt) error {
		net, err := v.NetworkLookupByName(l.cfg.Lab)
		if err != nil {
			return err
		}
		// Older versions of libvirt keep no metadata for networks, so the UUID says whose the network is.
		if uuidString(net.UUID) != l.cfg.ID {
			return &ForeignError{Kind: "network", Name: l.cfg.Lab}
		}
		n, err := v.NetworkIsActive(net)
		active = n == 1
		return err
	})
	if is(err, libvirt.ErrNoNetwork) {
		return false, nil
	}
	return active, err
}

// DeleteNetwork removes the network.
func (l *Lab) DeleteNetwork(ctx context.Context) error {
	active, err := l.NetworkActive(ctx)
	if err != nil {
		return err
	}
	l.cfg.Mutated("libvirt delete network " + l.cfg.Lab)
	err = l.nets.call(ctx, "delete network "+l.cfg.Lab, func(v *libvirt.Libvirt) error {
		net, err := v.NetworkLookupByName(l.cfg.Lab)
		if err != nil {
			return err
		}
		if active {
			if err := v.NetworkDestroy(net); err != nil {
				return err
			}
		}
		return v.NetworkUndefine(net)
	})
	if is(err, libvirt.ErrNoNetwork) {
		return nil
	}
	return err
}

func (l *Lab) networkXML(n Network) (string, error) {
	mask := net.CIDRMask(n.CIDR.Bits(), 32)
	dns := &libvirtxml.NetworkDNS{}
	dhcp := &libvirtxml.NetworkDHCP{}
	for _, h := range n.Hosts {
		dns.Host = append(dns.Host, libvirtxml.NetworkDNSHost{IP: h.IP.String(), Hostnames: []libvirtxml.NetworkDNSHostHostname{{Hostname: h.Name}}})
		dhcp.Hosts = append(dhcp.Hosts, libvirtxml.NetworkDHCPHost{MAC: MAC(l.cfg.ID, h.Name), Name: h.Name, IP: h.IP.String()})
	}
	if n.Resolver.IsValid() {
		dns.Forwarders = []libvirtxml.NetworkDNSForwarder{{Addr: n.Resolver.String()}}
	}
	definition := &libvirtxml.Network{
		Name:   l.cfg.Lab,
		UUID:   l.cfg.ID,
		Bridge: &libvirtxml.NetworkBridge{Name: l.BridgeName(), STP: "off", Delay: "0"},
		DNS:    dns,
		IPs:    []libvirtxml.NetworkIP{{Address: n.Gateway.String(), Netmask: net.IP(mask).String(), DHCP: dhcp}},
	}
	if n.Forward != ForwardNone {
		definition.Forward = &libvirtxml.NetworkForward{Mode: string(n.Forward)}
	}
	text, err := definition.Marshal()
	if err != nil {
		return "", fmt.Errorf("network XML: %w", err)
	}
	return text, nil
}

// Networks are the address ranges of all of a daemon's networks, also of those that are not active.
func Networks(ctx context.Context, socket string) (all []netip.Prefix, err error) {
	c := newConn(socket, networkURI)
	defer c.close()
	err = c.call(ctx, "list networks", func(v *libvirt.Libvirt) error {
		nets, _, err := v.ConnectListAllNetworks(1, 0)
		if err != nil {
			return err
		}
		for _, n := range nets {
			text, err := v.NetworkGetXMLDesc(n, 0)
			if is(err, libvirt.ErrNoNetwork) { // gone since it was listed
				continue
			}
			if err != nil {
				return err
			}
			var description libvirtxml.Network
			if err := description.Unmarshal(text); err != nil {
				return err
			}
			for _, ip := range description.IPs {
				if p, ok := rangeOf(ip); ok {
					all = append(all, p)
				}
			}
		}
		return nil
	})
	return all, err
}

// networkURI selects libvirt's network driver.
const networkURI = "network:///system"

func rangeOf(ip libvirtxml.NetworkIP) (netip.Prefix, bool) {
	address, err := netip.ParseAddr(ip.Address)
	if err != nil || !address.Is4() {
		return netip.Prefix{}, false
	}
	bits := int(ip.Prefix)
	if mask := net.ParseIP(ip.Netmask).To4(); mask != nil {
		bits, _ = net.IPMask(mask).Size()
	}
	p, err := address.Prefix(bits)
	return p, err == nil
}
