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

// libvirtTime bounds the question which networks libvirt has.
const libvirtTime = 10 * time.Second

// freeNetwork is where the machines of a lab that is not made yet can be: the first network that nothing else of this computer uses. A lab with a
// network namespace of its own shares it with nobody. Where none is free it is the first, and the check of the computer says what is in the way.
func freeNetwork(c *config.Cluster) netip.Prefix {
	taken := append(takenBeside(c), c.Network.PodSubnet, c.Network.ServiceSubnet)
	candidates := config.Networks()
	i := slices.IndexFunc(candidates, func(p netip.Prefix) bool { return !slices.ContainsFunc(taken, p.Overlaps) })
	return candidates[max(i, 0)]
}

// takenBeside are the networks that others of this computer use, for machines in its own network namespace.
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
	// Who does not answer is not asked here, but when the network is made.
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
