package state

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"k8slab/config"
	"k8slab/lab/host"
	"k8slab/lab/machine"
)

// libvirtTime bounds the listing of libvirt's networks.
const libvirtTime = 10 * time.Second

// freeNetwork chooses the network of a lab that is not made yet: the first candidate that nothing else on this computer uses. If none is
// free it is the first, and the check of this computer then says what is in the way. A lab with its own network namespace has no
// neighbours.
func freeNetwork(c *config.Cluster) netip.Prefix {
	taken := append(takenBeside(c), c.Network.PodSubnet, c.Network.ServiceSubnet)
	candidates := config.Networks()
	i := slices.IndexFunc(candidates, func(p netip.Prefix) bool { return !slices.ContainsFunc(taken, p.Overlaps) })
	return candidates[max(i, 0)]
}

// takenBeside are the networks that this computer and its other labs use. A lab of containers has its own network namespace: for it there
// are none.
func takenBeside(c *config.Cluster) []netip.Prefix {
	uri := c.Libvirt.URI
	if uri == "auto" {
		uri, _ = host.Choose()
	}
	h, err := host.Computers(uri)
	if err != nil || uri == host.Containers {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), libvirtTime)
	defer cancel()
	// An error is ignored here: making the network will report it.
	taken, _ := machine.Networks(ctx, h.NetworkSocket())
	taken = append(taken, host.Routes()...)
	names, _ := Names()
	for _, name := range names {
		if d, err := Open(name); err == nil {
			if made, err := d.Made(); err == nil && made != nil && made.Libvirt.URI == host.VirtualMachines {
				taken = append(taken, made.Network.CIDR)
			}
		}
	}
	return taken
}
