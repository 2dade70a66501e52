package config

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
)

// nodeBits is the pod range of one node: the controller manager's default.
const nodeBits = 24

func (d *document) checkNetwork(c *Cluster) {
	const (
		cidr     = "network.cidr"
		pods     = "network.pod_subnet"
		services = "network.service_subnet"
		vip      = "network.virtual_ip"
	)
	n := c.Network
	d.checkRange(cidr, n.CIDR, 8, 28)
	// Kubernetes splits pods into at most 2^16 node ranges, takes services of
	// at most 20 host bits, and kubeadm puts DNS on the 10th service address.
	d.checkRange(pods, n.PodSubnet, 8, nodeBits)
	d.checkRange(services, n.ServiceSubnet, 12, 28)
	if d.trusted(vip, cidr) {
		d.checkHost(vip, n.VirtualIP, n)
	}
	d.checkLoadBalancer(n)
	if d.trusted(pods, "nodes") {
		d.checkPodRoom(pods, n.PodSubnet, len(c.Nodes))
	}
	d.checkOverlap(pods, n.PodSubnet, cidr, n.CIDR)
	d.checkOverlap(services, n.ServiceSubnet, cidr, n.CIDR)
	d.checkOverlap(services, n.ServiceSubnet, pods, n.PodSubnet)
	if d.trusted("network.cni") && n.CNI != "flannel" {
		d.report("network.cni", "%s is not supported; use flannel", quote(n.CNI))
	}
	if d.trusted("network.uplink") && !slices.Contains([]Uplink{UplinkAuto, UplinkNAT, UplinkNone}, n.Uplink) {
		d.report("network.uplink", "%s is not known; use nat, none or auto", quote(string(n.Uplink)))
	}
	d.checkOutside(n.Outside, c.Addons, c.Kubernetes.Version)
}

// special are the ranges no machine, pod or service can have an address in:
// this host, loopback, link-local, and multicast with all that follows it.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("224.0.0.0/3"),
}

func (d *document) checkRange(field string, p netip.Prefix, largest, smallest int) {
	if !d.trusted(field) {
		return
	}
	if p.Bits() < largest || p.Bits() > smallest {
		d.report(field, "/%d is out of range; use a prefix length from /%d to /%d", p.Bits(), largest, smallest)
		return
	}
	if p != p.Masked() {
		d.report(field, "%s is an address inside a network; use the network itself, %s", p, p.Masked())
		return
	}
	for _, s := range special {
		if p.Overlaps(s) {
			d.report(field, "%s overlaps %s, which is reserved; use a private range such as 10.30.0.0/24", p, s)
			return
		}
	}
}

// checkPodRoom wants a range of its own for every node, onboard ones included.
func (d *document) checkPodRoom(field string, p netip.Prefix, nodes int) {
	if room := 1 << (nodeBits - p.Bits()); nodes > room {
		need := nodeBits - bits.Len(uint(nodes-1))
		d.report(field, "%s has room for %d nodes of a /%d each, and there are %d nodes; use a /%d or larger", p, room, nodeBits, nodes, need)
	}
}

// checkOverlap reports on the field the file has: a default cannot be edited.
func (d *document) checkOverlap(field string, p netip.Prefix, other string, q netip.Prefix) {
	if !d.trusted(field, other) || !p.Overlaps(q) {
		return
	}
	if !d.written(field) && d.written(other) {
		field, p, other, q = other, q, field, p
	}
	// Both ranges stay usable for the checks of addresses, so neither is marked.
	d.reportAt(d.line(field), field, "%s overlaps %s %s%s; use ranges that share no address", p, other, q, d.ifDefault(other))
}

func (d *document) checkNodeIP(field string, ip netip.Addr, n Network) {
	known := d.trusted("network.cidr")
	switch {
	case !d.trusted(field):
	case !ip.IsValid() && known:
		d.report(field, "network.cidr %s has no address left for it; use a larger network", n.CIDR)
	case !ip.IsValid():
	case ip == n.VirtualIP && d.trusted("network.virtual_ip"):
		d.report(field, "%s is network.virtual_ip%s, which no node may have; use another address", ip, d.ifDefault("network.virtual_ip"))
	case known:
		d.checkHost(field, ip, n)
	}
}

// checkHost wants an address that a machine in the network can have.
func (d *document) checkHost(field string, ip netip.Addr, n Network) {
	problem := ""
	switch {
	case !n.CIDR.Contains(ip):
		problem = "is outside"
	case ip == offset(n.CIDR, 0):
		problem = "is the network address of"
	case ip == offset(n.CIDR, lastOffset(n.CIDR)):
		problem = "is the broadcast address of"
	case ip == n.Gateway():
		problem = "is the gateway of"
	default:
		return
	}
	d.report(field, "%s %s network.cidr %s%s; %s", ip, problem, n.CIDR, d.ifDefault("network.cidr"), useHost(n))
}

func (d *document) ifDefault(field string) string {
	if d.written(field) {
		return ""
	}
	return " (the default)"
}

func useHost(n Network) string {
	return fmt.Sprintf("use an address from %s to %s", offset(n.CIDR, 2), offset(n.CIDR, lastOffset(n.CIDR)-1))
}

// largestPool is the prefix length of the largest range for LoadBalancer.
const largestPool = 20

// PoolOf is the default of LoadBalancer in a network: the last 16 addresses, in
// one smaller than a /26 the last quarter.
func PoolOf(cidr netip.Prefix) netip.Prefix {
	return netip.PrefixFrom(offset(cidr, lastOffset(cidr)), min(max(28, cidr.Bits()+2), 32)).Masked()
}

// LoadBalancerPool are the addresses of LoadBalancer that no machine has, as
// ranges FIRST-LAST in order.
func (c *Cluster) LoadBalancerPool() (ranges []string) {
	n := c.Network
	taken := []netip.Addr{n.CIDR.Masked().Addr(), n.Gateway(), n.VirtualIP, offset(n.CIDR, lastOffset(n.CIDR))}
	for _, node := range c.Nodes {
		taken = append(taken, node.IP)
	}
	var first, last netip.Addr
	end := func() {
		if first.IsValid() {
			ranges = append(ranges, fmt.Sprintf("%s-%s", first, last))
		}
		first = netip.Addr{}
	}
	for ip := n.LoadBalancer.Masked().Addr(); n.LoadBalancer.Contains(ip); ip = ip.Next() {
		if slices.Contains(taken, ip) {
			end()
			continue
		}
		if !first.IsValid() {
			first = ip
		}
		last = ip
	}
	end()
	return ranges
}

// checkLoadBalancer wants a range inside the network. Machines may be in it: a
// lab that gets more of them must stay readable.
func (d *document) checkLoadBalancer(n Network) {
	const field = "network.load_balancer"
	pool := n.LoadBalancer
	switch {
	case !d.written(field) || !d.trusted(field, "network.cidr"):
	case pool != pool.Masked():
		d.report(field, "%s is an address inside a range; use the range itself, %s", pool, pool.Masked())
	case pool.Bits() < n.CIDR.Bits() || !n.CIDR.Contains(pool.Addr()):
		d.report(field, "%s is not inside network.cidr %s%s; use a part of it, such as %s", pool, n.CIDR, d.ifDefault("network.cidr"), PoolOf(n.CIDR))
	case pool.Bits() < largestPool:
		d.report(field, "/%d is more than a lab needs; use a prefix length from /%d to /32", pool.Bits(), largestPool)
	}
}

// offset is the n-th address after the first one of an IPv4 range.
func offset(p netip.Prefix, n uint32) netip.Addr {
	base := p.Masked().Addr().As4()
	binary.BigEndian.PutUint32(base[:], binary.BigEndian.Uint32(base[:])+n)
	return netip.AddrFrom4(base)
}

// lastOffset is the offset of the last address of an IPv4 range.
func lastOffset(p netip.Prefix) uint32 { return 1<<(32-p.Bits()) - 1 }
