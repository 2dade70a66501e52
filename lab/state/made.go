package state

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"

	"k8slab/config"
)

// MadeFile is a cluster.yaml that describes the lab as it was made: with every default, the libvirt URI that was chosen, and the nodes that
// have machines, or had.
const MadeFile = "cluster.yaml"

// AsMade is the cluster as it is: what the lab was made with outranks cluster.yaml, which adds nodes and has the say in all that can change;
// nodes that were onboarded are members like any other, and nodes that the file no longer has stay. The differences are what of the file does
// not apply. Without a lab it is the cluster of the file.
func AsMade(c *config.Cluster) (*config.Cluster, []Difference, error) {
	d, err := Open(c.Name)
	if err != nil {
		return nil, nil, err
	}
	made, err := d.Made()
	if err != nil {
		return nil, nil, err
	}
	admitted, err := d.Admitted()
	if err != nil {
		return nil, nil, err
	}
	now, differences := merge(c, made, admitted)
	if made == nil && now.Network.Auto {
		now.MoveTo(freeNetwork(now))
	}
	return now, differences, nil
}

// Made reads what the lab was made with, nil before it was made. Its nodes with Onboard are those of cluster.yaml that wait, or that were
// admitted since.
func (d Dir) Made() (*config.Cluster, error) {
	data, err := os.ReadFile(d.Path(MadeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unreadable(d.dir, err)
	}
	c, _, err := config.Parse(d.Path(MadeFile), data)
	return c, err
}

// Settled tells whether what the lab is made with has been written down: its machines may exist.
func (d Dir) Settled() bool {
	_, err := os.Stat(d.Path(MadeFile))
	return err == nil
}

// unreadable says where the state is. The usual reason is that the user is not the one whose labs these are.
func unreadable(dir string, err error) error {
	if cause, ok := errors.AsType[*fs.PathError](err); ok {
		err = cause.Err
	}
	return fmt.Errorf("the lab's state in %s cannot be read: %w; run as the user who made the lab (root), or set XDG_STATE_HOME", dir, err)
}

// merge is AsMade without the disk.
func merge(file, made *config.Cluster, admitted []string) (*config.Cluster, []Difference) {
	now := *file
	now.Nodes = slices.Clone(file.Nodes)
	var differences []Difference
	if made != nil {
		machines := machinesOf(made, admitted)
		differences = settledDifferences(file, made, machines)
		now.Kubernetes, now.Image, now.Libvirt, now.Network = made.Kubernetes, made.Image, made.Libvirt, made.Network
		for _, n := range machines {
			*now.ResourceOf(n.Role) = made.Resource(n.Role)
			i := slices.IndexFunc(now.Nodes, hasName(n.Name))
			if i < 0 {
				now.Nodes = append(now.Nodes, n)
			} else {
				now.Nodes[i] = n
			}
			differences = append(differences, nodeDifferences(file, n, takesOf(n, machines), slices.Contains(admitted, n.Name))...)
		}
		now.Reassign(func(name string) (netip.Addr, bool) {
			n, found := made.Node(name)
			return n.IP, found
		})
		now.Nodes = slices.DeleteFunc(now.Nodes, func(n config.Node) bool { // an address belongs to the machine that has it
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

// machinesOf are the nodes that have machines, or had: one that waits to be onboarded has none.
func machinesOf(made *config.Cluster, admitted []string) []config.Node {
	return slices.DeleteFunc(slices.Clone(made.Nodes), func(n config.Node) bool { return n.Onboard && !slices.Contains(admitted, n.Name) })
}
