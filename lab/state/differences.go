package state

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8slab/config"
)

// Way is what up does about a difference.
type Way string

// The ways, from what touches nothing that is there to what up refuses.
const (
	Applies      Way = "apply"       // it applies it
	Keeps        Way = "keep"        // it leaves what is there, and goes on
	Reconfigures Way = "reconfigure" // it has kubeadm make its files again, and restarts what reads them, one node after another
	Resizes      Way = "resize"      // it gives the machines of a role another size, one after another
	Removes      Way = "remove"      // it removes a node, if a person agrees; one that the file has is then made anew
	Refuses      Way = "refuse"      // it does nothing at all: this cannot change in place
)

// Difference is a setting in which cluster.yaml differs from what the lab was made with.
type Difference struct {
	Key   string `json:"key"`            // in cluster.yaml, or nodes[NAME].FIELD
	Node  string `json:"node,omitempty"` // whose setting it is, if it is one node's
	Made  string `json:"made_with"`      // "" for none
	Now   string `json:"now,omitempty"`  // "" for what the file no longer has
	Way   Way    `json:"way"`
	Why   string `json:"why,omitempty"` // it is not simply applied
	Takes string `json:"takes"`         // how to apply it
}

func (d Difference) String() string {
	now := "now " + d.Now
	if d.Now == "" {
		now = "no longer in the file"
	}
	if d.Why != "" {
		now += "; " + d.Why
	}
	return fmt.Sprintf("%s: made with %s, %s; to apply it: %s", d.Key, cmp.Or(d.Made, "none"), now, d.Takes)
}

// ChangedError is a cluster.yaml that up cannot apply to the lab that is there, or not without a person's consent.
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
	takesUp      = "labctl up"
	takesNothing = "nothing, it applies from the next command on"
	takesResize  = "labctl up, one machine after another"
	takesOptions = "labctl up, one node after another"
	takesPrune   = "labctl up --prune, which drains the node and removes it with its disk"
	takesAnew    = takesPrune + ", and makes it anew"
	takesStart   = "labctl power off NODE and labctl up, for each node: machines get it when they start"
	takesNewLab  = "labctl down, then labctl up"
	takesUpgrade = "labctl upgrade, to a version that is at most one minor version newer; or labctl down, then labctl up"
	takesAnother = "first labctl up with another control plane beside it; or labctl down, then labctl up"
	takesDelete  = "labctl kubectl delete of its objects"
	takesNewName = "another name in the file, because it describes another cluster"
)

// Why a difference is not simply applied.
const (
	whyLast     = "no control plane that the lab has would be left"
	whyDisk     = "a disk keeps its size"
	whyOptions  = "kubeadm reads it only when a node is made"
	whyVersion  = "up does not change the version of a cluster"
	whySource   = "the programs of a lab cannot come from elsewhere"
	whyMachines = "machines cannot move to it"
	whyImage    = "machines keep the image that they were made from"
	whyAddress  = "certificates and etcd's members are made for the addresses"
	whyPods     = "what runs has addresses of the old range"
	whyPool     = "Services have addresses of the old range"
	whyUplink   = "libvirt's network keeps what it does with packets while it is up"
	whyAddon    = "up removes no add-on"
)

// settled are the keys that cannot change after a lab was made. A new option that cannot be applied in place gets its verdict here.
var settled = []struct {
	key, why string
	of       func(*config.Cluster) string
}{
	{"libvirt.uri", whyMachines, func(c *config.Cluster) string { return c.Libvirt.URI }},
	{"libvirt.pool", whyMachines, func(c *config.Cluster) string { return c.Libvirt.Pool }},
	{"kubernetes.version", whyVersion, func(c *config.Cluster) string { return c.Kubernetes.Version }},
	{"kubernetes.source", whySource, func(c *config.Cluster) string { return c.Kubernetes.Source }},
	{"kubernetes.programs", whySource, func(c *config.Cluster) string { return inText(c.Kubernetes.Programs) }},
	{"etcd.source", whySource, func(c *config.Cluster) string { return c.Etcd.Source }},
	{"coredns.source", whySource, func(c *config.Cluster) string { return c.CoreDNS.Source }},
	{"containerd.source", whySource, func(c *config.Cluster) string { return c.Containerd.Source }},
	{"kubernetes.kubeadm.init", whyOptions, func(c *config.Cluster) string { return inText(c.Kubernetes.Kubeadm.Init) }},
	{"kubernetes.kubeadm.join", whyOptions, func(c *config.Cluster) string { return inText(c.Kubernetes.Kubeadm.Join) }},
	{"image.from", whyImage, func(c *config.Cluster) string { return c.Image.From }},
	{"image.base", whyImage, func(c *config.Cluster) string { return c.Image.Base }},
	{"image.distribution", whyImage, func(c *config.Cluster) string { return c.Image.Distribution }},
	{"network.cidr", whyAddress, func(c *config.Cluster) string { return c.Network.CIDR.String() }},
	{"network.virtual_ip", whyAddress, func(c *config.Cluster) string { return c.Network.VirtualIP.String() }},
	{"network.load_balancer", whyPool, func(c *config.Cluster) string {
		if c.Network.LoadBalancer == config.PoolOf(c.Network.CIDR) {
			return "the default" // in another network it is another one
		}
		return c.Network.LoadBalancer.String()
	}},
	{"network.pod_subnet", whyPods, func(c *config.Cluster) string { return c.Network.PodSubnet.String() }},
	{"network.service_subnet", whyPods, func(c *config.Cluster) string { return c.Network.ServiceSubnet.String() }},
	{"network.uplink", whyUplink, func(c *config.Cluster) string { return string(c.Network.Uplink) }},
	{"network.cni", whyPods, func(c *config.Cluster) string { return c.Network.CNI }},
}

// compare lists what of the file differs from the lab that was made, in the order in which a person reads the file. machines are the nodes
// that have machines, admitted those of them that were onboarded.
func compare(file, made *config.Cluster, machines []config.Node, admitted []string) (all []Difference) {
	for _, s := range settled {
		if chosen(s.key, file) {
			continue
		}
		if was, now := s.of(made), s.of(file); was != now {
			d := Difference{Key: s.key, Made: was, Now: now, Way: Refuses, Why: s.why, Takes: takesNewLab}
			if s.key == "kubernetes.version" {
				d.Takes = takesUpgrade
			}
			all = append(all, d)
		}
	}
	all = append(all, optionDifferences(file, made, machines)...)
	all = append(all, sizeDifferences(file, made, machines)...)
	leaving := func(n config.Node) bool { return leaves(file, n, slices.Contains(admitted, n.Name)) }
	stays := slices.ContainsFunc(machines, func(n config.Node) bool { return n.Role == config.ControlPlane && !leaving(n) })
	for _, n := range machines {
		if leaving(n) {
			all = append(all, leavingDifferences(file, n, stays || n.Role != config.ControlPlane)...)
		} else if now, found := file.Node(n.Name); found {
			all = append(all, nodeDifferences(keyOf(n), n.Name, n.NodeOptions, now.NodeOptions)...)
		}
	}
	for _, n := range file.Nodes {
		if !n.Onboard && !slices.ContainsFunc(machines, hasName(n.Name)) {
			all = append(all, Difference{Key: keyOf(n), Node: n.Name, Now: written(n), Way: Applies, Takes: takesUp})
		}
	}
	if was, now := fmt.Sprint(made.Registries), fmt.Sprint(file.Registries); was != now {
		all = append(all, Difference{Key: "registries", Made: names(made.Registries), Now: names(file.Registries), Way: Applies, Takes: takesStart})
	}
	for _, d := range fieldDifferences(made.Network.Outside, file.Network.Outside) {
		d.Key, d.Way, d.Takes = "network."+d.Key, Applies, takesStart
		all = append(all, d)
	}
	all = append(all, addonDifferences(file, made)...)
	return append(all, tuningDifferences(file, made)...)
}

// chosen tells whether labctl chose the key's value when the lab was made.
func chosen(key string, file *config.Cluster) bool {
	switch key {
	case "libvirt.uri":
		return file.Libvirt.URI == "auto"
	case "kubernetes.version":
		return file.Kubernetes.Floats()
	case "kubernetes.source":
		return file.Kubernetes.Source == config.SourceAuto
	case "image.distribution":
		return file.Image.Distribution == ""
	case "network.cidr", "network.virtual_ip":
		return file.Network.Auto
	}
	return false
}

func sizeDifferences(file, made *config.Cluster, machines []config.Node) (all []Difference) {
	for _, role := range []config.Role{config.ControlPlane, config.Worker} {
		if !slices.ContainsFunc(machines, func(n config.Node) bool { return n.Role == role }) {
			continue
		}
		was, now := made.Resource(role), file.Resource(role)
		for _, s := range []struct {
			field    string
			was, now int
			d        Difference
		}{
			{"cpus", was.CPUs, now.CPUs, Difference{Way: Resizes, Takes: takesResize}},
			{"memory", was.Memory, now.Memory, Difference{Way: Resizes, Takes: takesResize}},
			{"disk", was.Disk, now.Disk, Difference{Way: Refuses, Why: whyDisk, Takes: takesNewLab}},
		} {
			if s.was != s.now {
				s.d.Key, s.d.Made, s.d.Now = role.ResourcesKey()+"."+s.field, fmt.Sprint(s.was), fmt.Sprint(s.now)
				all = append(all, s.d)
			}
		}
		all = append(all, nodeDifferences(role.ResourcesKey(), "", was.NodeOptions, now.NodeOptions)...)
	}
	return all
}

func keyOf(n config.Node) string { return "nodes[" + n.Name + "]" }

// written is what a person would look for in the file. An address that labctl chooses is not there.
func written(n config.Node) string {
	if n.Auto {
		return string(n.Role)
	}
	return fmt.Sprintf("%s %s", n.Role, n.IP)
}

// leaves tells whether the node's machine has to go: the file does not have the node, or has another machine by its name.
func leaves(file *config.Cluster, was config.Node, admitted bool) bool {
	n, found := file.Node(was.Name)
	return !found || n.Role != was.Role || !n.Auto && n.IP != was.IP || n.Onboard && !admitted || inText(was.Disks) != inText(n.Disks)
}

// leavingDifferences are those of a node whose machine has to go. spared tells whether the lab can do without it.
func leavingDifferences(file *config.Cluster, was config.Node, spared bool) (all []Difference) {
	add := func(field, made, now, takes string) {
		d := Difference{Key: keyOf(was) + field, Node: was.Name, Made: made, Now: now, Way: Removes, Takes: takes}
		if !spared {
			d.Way, d.Why, d.Takes = Refuses, whyLast, takesAnother
		}
		all = append(all, d)
	}
	n, found := file.Node(was.Name)
	if !found {
		add("", written(config.Node{Role: was.Role, IP: was.IP}), "", takesPrune)
		return all
	}
	if was.Role != n.Role {
		add(".role", string(was.Role), string(n.Role), takesAnew)
	}
	if !n.Auto && was.IP != n.IP {
		add(".ip", was.IP.String(), n.IP.String(), takesAnew)
	}
	if n.Onboard && !was.Onboard {
		add(".onboard", "false", "true", takesPrune)
	}
	if made, now := inText(was.Disks), inText(n.Disks); made != now {
		add(".disks", made, now, takesAnew)
	}
	return all
}

func names(registries []config.Registry) string {
	var all []string
	for _, r := range registries {
		all = append(all, r.Name)
	}
	return strings.Join(all, ", ")
}

func addonDifferences(file, made *config.Cluster) (all []Difference) {
	for _, name := range config.AddonNames {
		was, now := slices.Contains(made.Addons, name), slices.Contains(file.Addons, name)
		switch {
		case now && !was:
			all = append(all, Difference{Key: "addons", Now: name, Way: Applies, Takes: takesUp})
		case was && !now:
			all = append(all, Difference{Key: "addons", Made: name, Way: Keeps, Why: whyAddon, Takes: takesDelete})
		}
	}
	return all
}

func tuningDifferences(file, made *config.Cluster) []Difference {
	all := fieldDifferences(made.Tuning, file.Tuning)
	for i := range all {
		all[i].Key, all[i].Way, all[i].Takes = "tuning."+all[i].Key, Applies, takesNothing
	}
	return all
}
