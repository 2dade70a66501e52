package config

import (
	"net/netip"
	"slices"
)

// Networks are what `network.cidr: auto` takes the first free one of: 10.30.0.0/24 to 10.49.0.0/24.
func Networks() []netip.Prefix {
	var all []netip.Prefix
	for second := byte(30); second < 50; second++ {
		all = append(all, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, second, 0, 0}), 24))
	}
	return all
}

// The first addresses in a network that nodes get which have none in the file.
const (
	virtualIPOffset    = 10
	controlPlaneOffset = 11
	workerOffset       = 21
)

// settleAddresses gives an address to whatever has none. The network is chosen too if nothing in the file has an address: it is the first of
// Networks until MoveTo says another. Machines that exist have theirs.
func (d *document) settleAddresses(c *Cluster) {
	if c.OverSSH() {
		c.takeHosts()
		return
	}
	const cidr = "network.cidr"
	n := &c.Network
	asked := n.CIDR == autoNetwork
	n.Auto = asked || !n.CIDR.IsValid()
	if n.Auto {
		n.CIDR = Networks()[0]
		hasAddress := func(n Node) bool { return n.IP.IsValid() }
		if n.VirtualIP.IsValid() || n.LoadBalancer.IsValid() || slices.ContainsFunc(c.Nodes, hasAddress) {
			n.Auto = false
			if asked {
				d.report(cidr, "auto chooses addresses too, and the file has some; remove network.virtual_ip, network.load_balancer and every ip, or write the network, such as %s", n.CIDR)
			}
		}
	}
	c.assign()
}

// assign gives the virtual IP, the load balancer and the nodes that have none addresses: control planes from the 11th on and workers from the 21st, in the order of the
// file, where they are free.
func (c *Cluster) assign() {
	if !c.Network.VirtualIP.IsValid() {
		c.Network.VirtualIP = offset(c.Network.CIDR, virtualIPOffset)
	}
	if !c.Network.LoadBalancer.IsValid() {
		c.Network.LoadBalancer = PoolOf(c.Network.CIDR)
	}
	used := map[netip.Addr]bool{c.Network.VirtualIP: true}
	for _, n := range c.Nodes {
		used[n.IP] = true
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if n.IP.IsValid() {
			continue
		}
		n.Auto = true
		first := uint32(workerOffset)
		if n.Role == ControlPlane {
			first = controlPlaneOffset
		}
		if ip, ok := freeAddress(c.Network.CIDR, first, used); ok {
			n.IP, used[ip] = ip, true
		}
	}
}

// freeAddress is the first that is not used, from that one on and then from the beginning; the gateway has the first of all.
func freeAddress(cidr netip.Prefix, first uint32, used map[netip.Addr]bool) (netip.Addr, bool) {
	last := lastOffset(cidr)
	for _, span := range [][2]uint32{{first, last}, {2, min(first, last)}} {
		for at := span[0]; at < span[1]; at++ {
			if ip := offset(cidr, at); !used[ip] {
				return ip, true
			}
		}
	}
	return netip.Addr{}, false
}

// MoveTo puts a cluster with Network.Auto into another of Networks.
func (c *Cluster) MoveTo(cidr netip.Prefix) {
	c.Network.CIDR, c.Network.VirtualIP, c.Network.LoadBalancer = cidr, netip.Addr{}, netip.Prefix{}
	c.Nodes = slices.Clone(c.Nodes)
	for i := range c.Nodes {
		c.Nodes[i].IP = netip.Addr{}
	}
	c.assign()
}

// Reassign gives the nodes with Auto new addresses, beside those of the others, but for those that has knows.
func (c *Cluster) Reassign(has func(name string) (netip.Addr, bool)) {
	c.Nodes = slices.Clone(c.Nodes)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if !n.Auto {
			continue
		}
		n.IP = netip.Addr{}
		if ip, ok := has(n.Name); ok {
			n.IP = ip
		}
	}
	c.assign()
}
