package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"

	"k8slab/config"
)

// madeFile is a cluster.yaml that describes the lab as it was made: with every default, the libvirt URI that was chosen, and the nodes that
// have machines, or had.
const madeFile = "cluster.yaml"

// Difference is something that cluster.yaml says now and that the lab was made without.
type Difference struct {
	Key   string `json:"key"`           // of cluster.yaml, or nodes[NAME] and what of it
	Made  string `json:"made_with"`     // "" for nothing
	Now   string `json:"now,omitempty"` // "" for a node that is not in the file
	Takes string `json:"takes"`         // how to apply it
}

func (d Difference) String() string {
	now := "now " + d.Now
	if d.Now == "" {
		now = "no longer in the file"
	}
	made := d.Made
	if made == "" {
		made = "none"
	}
	return fmt.Sprintf("%s: made with %s, %s; to apply it: %s", d.Key, made, now, d.Takes)
}

// ChangedError is a cluster.yaml that up cannot apply to the lab that is there.
type ChangedError struct {
	Lab         string
	Differences []Difference
}

func (e *ChangedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cluster.yaml differs from what lab %q was made with, so nothing was changed:", e.Lab)
	for _, d := range e.Differences {
		b.WriteString("\n  " + d.String())
	}
	fmt.Fprintf(&b, "\nnext: put back what was there, or apply it as each line says; labctl --lab %s up starts the lab as it was made", e.Lab)
	return b.String()
}

// What it takes to apply a difference.
const (
	takesNewLab = "labctl down, then labctl up"
	takesReset  = "labctl reset %s --remove, then labctl up"
)

// AsMade is the cluster as it is: what the lab was made with outranks cluster.yaml, which adds nodes and has the say in all that can change;
// nodes that were onboarded are members like any other, and nodes that the file no longer has stay. The differences are what of the file does
// not apply. Without a lab it is the cluster of the file.
func AsMade(c *config.Cluster) (*config.Cluster, []Difference, error) {
	s, err := openState(c.Name)
	if err != nil {
		return nil, nil, err
	}
	made, err := s.made()
	if err != nil {
		return nil, nil, err
	}
	admitted, err := s.admitted()
	if err != nil {
		return nil, nil, err
	}
	now, differences := merge(c, made, admitted)
	if made == nil && now.Network.Auto {
		now.MoveTo(freeNetwork(now))
	}
	return now, differences, nil
}

// made reads what the lab was made with, nil before it was made. Its nodes with Onboard are those of cluster.yaml that wait, or that were
// admitted since.
func (s state) made() (*config.Cluster, error) {
	data, err := os.ReadFile(s.path(madeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unreadable(s.dir, err)
	}
	c, _, err := config.Parse(s.path(madeFile), data)
	return c, err
}

// settled tells whether what the lab is made with has been written down: its machines may exist.
func (s state) settled() bool {
	_, err := os.Stat(s.path(madeFile))
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

// settled are the keys that a lab is made with once and for all.
var settled = []struct {
	key string
	of  func(*config.Cluster) string
}{
	{"libvirt.uri", func(c *config.Cluster) string { return c.Libvirt.URI }},
	{"libvirt.pool", func(c *config.Cluster) string { return c.Libvirt.Pool }},
	{"kubernetes.version", func(c *config.Cluster) string { return c.Kubernetes.Version }},
	{"kubernetes.source", func(c *config.Cluster) string { return c.Kubernetes.Source }},
	{"image.base", func(c *config.Cluster) string { return c.Image.Base }},
	{"network.cidr", func(c *config.Cluster) string { return c.Network.CIDR.String() }},
	{"network.virtual_ip", func(c *config.Cluster) string { return c.Network.VirtualIP.String() }},
	{"network.pod_subnet", func(c *config.Cluster) string { return c.Network.PodSubnet.String() }},
	{"network.service_subnet", func(c *config.Cluster) string { return c.Network.ServiceSubnet.String() }},
	{"network.cni", func(c *config.Cluster) string { return c.Network.CNI }},
}

func settledDifferences(file, made *config.Cluster, machines []config.Node) (all []Difference) {
	add := func(key, was, now string) {
		if was != now {
			all = append(all, Difference{Key: key, Made: was, Now: now, Takes: takesNewLab})
		}
	}
	for _, s := range settled {
		if s.key == "libvirt.uri" && file.Libvirt.URI == "auto" || file.Network.Auto && (s.key == "network.cidr" || s.key == "network.virtual_ip") {
			continue // it was chosen when the lab was made
		}
		add(s.key, s.of(made), s.of(file))
	}
	for _, role := range []config.Role{config.ControlPlane, config.Worker} {
		if !slices.ContainsFunc(machines, func(n config.Node) bool { return n.Role == role }) {
			continue
		}
		key := "resources." + strings.ReplaceAll(string(role), "-", "_") + "."
		was, now := made.Resource(role), file.Resource(role)
		add(key+"cpus", fmt.Sprint(was.CPUs), fmt.Sprint(now.CPUs))
		add(key+"memory", fmt.Sprint(was.Memory), fmt.Sprint(now.Memory))
		add(key+"disk", fmt.Sprint(was.Disk), fmt.Sprint(now.Disk))
	}
	return all
}

// takesOf is how a node is changed. The only control plane cannot leave.
func takesOf(n config.Node, machines []config.Node) string {
	if n.Role == config.ControlPlane && !slices.ContainsFunc(machines, func(m config.Node) bool { return m.Role == n.Role && m.Name != n.Name }) {
		return takesNewLab
	}
	return fmt.Sprintf(takesReset, n.Name)
}

// nodeDifferences compares a node that has a machine with what the file says of it.
func nodeDifferences(file *config.Cluster, was config.Node, takes string, admitted bool) (all []Difference) {
	key := "nodes[" + was.Name + "]"
	n, found := file.Node(was.Name)
	if !found {
		return []Difference{{Key: key, Made: fmt.Sprintf("%s %s", was.Role, was.IP), Takes: takes}}
	}
	add := func(field string, was, now any) {
		if was != now {
			all = append(all, Difference{Key: key + field, Made: fmt.Sprint(was), Now: fmt.Sprint(now), Takes: takes})
		}
	}
	add(".role", was.Role, n.Role)
	if !n.Auto {
		add(".ip", was.IP, n.IP)
	}
	if !admitted && n.Onboard {
		add(".onboard", was.Onboard, n.Onboard)
	}
	return all
}

// settle writes down what the lab is made with, before machines of the nodes are made.
func (l *Lab) settle(nodes ...config.Node) error {
	was, err := l.state.made()
	if err != nil {
		return err
	}
	admitted, err := l.state.admitted()
	if err != nil {
		return err
	}
	made := *l.cluster
	made.Libvirt.URI = l.uri
	made.Nodes = nil
	if was != nil {
		made.Nodes = machinesOf(was, admitted)
	} else {
		nodes = append(l.cluster.Members(), nodes...)
	}
	waiting := slices.DeleteFunc(slices.Clone(l.described.Nodes), func(n config.Node) bool { return !n.Onboard })
	for _, n := range slices.Concat(waiting, nodes) { // one that was admitted is in both, and stays one that was onboarded
		if !slices.ContainsFunc(made.Nodes, hasName(n.Name)) {
			made.Nodes = append(made.Nodes, n)
		}
	}
	return l.writeMade(&made)
}

// forget takes a node out of what the lab is made with, after its machine was removed.
func (l *Lab) forget(name string) error {
	if err := os.Remove(l.state.path(membersDir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	made, err := l.state.made()
	if err != nil || made == nil {
		return errors.Join(err, l.recount())
	}
	made.Nodes = slices.DeleteFunc(made.Nodes, hasName(name))
	return errors.Join(l.writeMade(made), l.recount())
}

func (l *Lab) writeMade(c *config.Cluster) error {
	text, err := c.YAML()
	if err != nil {
		return err
	}
	if _, _, err := config.Parse("cluster.yaml, together with the lab that is there", text); err != nil {
		return err // what cannot be read again would lock the lab
	}
	return l.state.write(madeFile, text)
}

// Differences are what cluster.yaml says and the lab was made without.
func (l *Lab) Differences() []Difference { return slices.Clone(l.differences) }

// CheckDescribed refuses a cluster.yaml that differs from the lab in what cannot change.
func (l *Lab) CheckDescribed() error {
	if len(l.differences) == 0 {
		return nil
	}
	return &ChangedError{Lab: l.cluster.Name, Differences: l.differences}
}
