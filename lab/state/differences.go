package state

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8slab/config"
)

// Difference is a setting in which cluster.yaml differs from what the lab was made with.
type Difference struct {
	Key   string `json:"key"`           // in cluster.yaml, or nodes[NAME].FIELD
	Made  string `json:"made_with"`     // "" for none
	Now   string `json:"now,omitempty"` // "" for a node that the file no longer has
	Takes string `json:"takes"`         // how to apply it
}

func (d Difference) String() string {
	now := "now " + d.Now
	if d.Now == "" {
		now = "no longer in the file"
	}
	return fmt.Sprintf("%s: made with %s, %s; to apply it: %s", d.Key, cmp.Or(d.Made, "none"), now, d.Takes)
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
	takesNewLab  = "labctl down, then labctl up"
	takesReset   = "labctl reset %s --remove, then labctl up"
	takesNewName = "another name in the file, because it describes another cluster"
)

// settled are the keys that cannot change after a lab was made.
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
			continue // labctl chose it when the lab was made
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

// takesOf says how to apply a change of the node. A single control plane cannot be removed, so it takes a new lab.
func takesOf(n config.Node, machines []config.Node) string {
	if n.Role == config.ControlPlane && !slices.ContainsFunc(machines, func(m config.Node) bool { return m.Role == n.Role && m.Name != n.Name }) {
		return takesNewLab
	}
	return fmt.Sprintf(takesReset, n.Name)
}

// nodeDifferences compares a node that has a machine with the file.
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
