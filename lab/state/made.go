package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"time"

	"k8slab/config"
	"k8slab/lab/host"
	"k8slab/lab/machine"
)

// MadeFile is a cluster.yaml that describes the lab as it was made: with all defaults, the chosen libvirt URI, and the nodes for which
// machines were made.
const MadeFile = "cluster.yaml"

// uriFile has the libvirt URI of a lab that a labctl before MadeFile made.
const uriFile = "uri"

// describe sets the lab's clusters. cluster.yaml adds nodes and sets everything that can change; what cannot change is as it was made, and
// nodes that the file no longer has stay. Of a cluster that labctl did not make the file says all. Onboarded nodes are members like any
// other. Without a lab it is the cluster of the file.
func (l *Lab) describe() error {
	made, err := l.Made()
	if err != nil {
		return err
	}
	admitted, err := l.Admitted()
	if err != nil {
		return err
	}
	l.Cluster, l.Differences = merge(l.Described, made, admitted)
	if made == nil {
		if l.older() {
			l.Cluster.ChooseDistribution(config.Bookworm)
		}
		l.Cluster.ChooseDistribution(config.DefaultDistribution)
		if l.Cluster.Network.Auto {
			l.Cluster.MoveTo(freeNetwork(l.Cluster))
		}
	}
	l.After = l.Cluster
	if leaving := l.Leaving(); len(leaving) > 0 {
		gone := func(name string) bool { return slices.ContainsFunc(leaving, hasName(name)) }
		left := *made
		left.Nodes = slices.DeleteFunc(slices.Clone(made.Nodes), func(n config.Node) bool { return gone(n.Name) })
		l.After, _ = merge(l.Described, &left, slices.DeleteFunc(admitted, gone))
	}
	return nil
}

// Made reads what the lab was made with, nil before it was made. Its nodes with Onboard are still to be onboarded, or were admitted since.
func (d Dir) Made() (*config.Cluster, error) {
	data, err := os.ReadFile(d.Path(MadeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unreadable(d.dir, err)
	}
	c, _, err := config.Parse(d.Path(MadeFile), data)
	if err == nil {
		c.ChooseDistribution(config.Bookworm) // a labctl made it that had no other
	}
	return c, err
}

// older tells whether a labctl before MadeFile made the lab. Such a lab has Debian 12.
func (d Dir) older() bool {
	_, err := os.Stat(d.Path(uriFile))
	return err == nil
}

// Settled tells whether Settle has written down what the lab is made with. Then its machines may exist.
func (d Dir) Settled() bool {
	_, err := os.Stat(d.Path(MadeFile))
	return err == nil
}

// unreadable is the error for a state that cannot be read. Usually the lab belongs to another user.
func unreadable(dir string, err error) error {
	if cause, ok := errors.AsType[*fs.PathError](err); ok {
		err = cause.Err
	}
	return fmt.Errorf("the lab's state in %s cannot be read: %w; run as the user who made the lab (root), or set XDG_STATE_HOME", dir, err)
}

// merge is describe without reading files.
func merge(file, made *config.Cluster, admitted []string) (*config.Cluster, []Difference) {
	now := *file
	now.Nodes = slices.Clone(file.Nodes)
	var differences []Difference
	switch {
	case made == nil || made.OverSSH() && file.OverSSH(): // the file says all
	case made.OverSSH() != file.OverSSH():
		now, differences = *made, []Difference{{
			Key: "machines", Made: string(made.Machines), Now: string(file.Machines), Way: Refuses, Takes: takesNewName}}
		now.Nodes = slices.Clone(made.Nodes)
	default:
		machines := machinesOf(made, admitted)
		differences = compare(file, made, machines, admitted)
		now.Kubernetes, now.Etcd, now.CoreDNS, now.Containerd = made.Kubernetes, made.Etcd, made.CoreDNS, made.Containerd
		now.Image, now.Libvirt, now.Network = made.Image, made.Libvirt, made.Network
		for _, n := range machines {
			r, was := now.ResourceOf(n.Role), made.Resource(n.Role)
			r.Disk, r.NodeOptions = was.Disk, was.NodeOptions
			i := slices.IndexFunc(now.Nodes, hasName(n.Name))
			if i < 0 {
				now.Nodes = append(now.Nodes, n)
			} else {
				now.Nodes[i] = n
			}
		}
		now.Reassign(func(name string) (netip.Addr, bool) {
			n, found := made.Node(name)
			return n.IP, found
		})
		now.Nodes = slices.DeleteFunc(now.Nodes, func(n config.Node) bool { // a machine keeps its address: a new node cannot have it
			return slices.ContainsFunc(machines, func(m config.Node) bool { return m.IP == n.IP && m.Name != n.Name })
		})
	}
	for i := range now.Nodes {
		now.Nodes[i].Onboard = now.Nodes[i].Onboard && !slices.Contains(admitted, now.Nodes[i].Name)
	}
	return &now, differences
}

func hasName(name string) func(config.Node) bool {
	return func(n config.Node) bool { return n.Name == name }
}

// machinesOf are the nodes for which machines were made: not those that are still to be onboarded.
func machinesOf(made *config.Cluster, admitted []string) []config.Node {
	return slices.DeleteFunc(slices.Clone(made.Nodes), func(n config.Node) bool { return n.Onboard && !slices.Contains(admitted, n.Name) })
}

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
