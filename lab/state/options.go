package state

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8slab/config"
)

// Options are what cluster.yaml has for Kubernetes' own programs and Nodes. up gives changed ones to the cluster that is there, as the last of
// what a node gets: until then the lab, and what is made for it, is as it was made.

// reconfigured are the keys of the cluster's options.
var reconfigured = []struct {
	key string
	of  func(*config.Cluster) any
}{
	{"kubernetes.feature_gates", func(c *config.Cluster) any { return c.Kubernetes.FeatureGates }},
	{"kubernetes.kubeadm.cluster", func(c *config.Cluster) any { return c.Kubernetes.Kubeadm.Cluster }},
	{"kubernetes.kubeadm.kubelet", func(c *config.Cluster) any { return c.Kubernetes.Kubeadm.Kubelet }},
	{"kubernetes.kubeadm.kube_proxy", func(c *config.Cluster) any { return c.Kubernetes.Kubeadm.KubeProxy }},
	{"kubernetes.kubeadm.patches", func(c *config.Cluster) any { return c.Kubernetes.Kubeadm.Patches }},
}

func optionDifferences(file, made *config.Cluster, machines []config.Node) (all []Difference) {
	if len(machines) == 0 {
		return nil
	}
	for _, o := range reconfigured {
		if was, now := inText(o.of(made)), inText(o.of(file)); was != now {
			all = append(all, Difference{Key: o.key, Made: was, Now: now, Way: Reconfigures, Takes: takesOptions})
		}
	}
	return all
}

// nodeDifferences are those of the options of a role, or of a node. A machine keeps its disks.
func nodeDifferences(key, node string, was, now config.NodeOptions) (all []Difference) {
	for _, d := range fieldDifferences(was, now) {
		d.Way, d.Takes = Reconfigures, takesOptions
		if d.Key == "disks" {
			d.Way, d.Why, d.Takes = Refuses, whyDisk, takesNewLab
		}
		d.Key, d.Node = key+"."+d.Key, node
		all = append(all, d)
	}
	return all
}

// setOptions gives a cluster the options of another one's description.
func setOptions(c, from *config.Cluster) {
	k, of := &c.Kubernetes, from.Kubernetes
	k.FeatureGates = of.FeatureGates
	k.Kubeadm.Cluster, k.Kubeadm.Kubelet, k.Kubeadm.KubeProxy, k.Kubeadm.Patches = of.Kubeadm.Cluster, of.Kubeadm.Kubelet, of.Kubeadm.KubeProxy, of.Kubeadm.Patches
	set := func(to *config.NodeOptions, options config.NodeOptions) {
		options.Disks = to.Disks
		*to = options
	}
	for _, role := range []config.Role{config.ControlPlane, config.Worker} {
		set(&c.ResourceOf(role).NodeOptions, from.Resource(role).NodeOptions)
	}
	c.Nodes = slices.Clone(c.Nodes)
	for i := range c.Nodes {
		if n, found := from.Node(c.Nodes[i].Name); found {
			set(&c.Nodes[i].NodeOptions, n.NodeOptions)
		}
	}
}

// reconfiguring is a directory of the lab's while up changes options. It has a cluster.yaml for each attempt: what an interrupted one has
// changed is not known.
const reconfiguring = "reconfiguring"

// Reconfigures tells whether up changes options.
func (l Lab) Reconfigures() bool {
	_, err := os.Stat(l.Path(reconfiguring))
	return err == nil || slices.ContainsFunc(l.Differences, func(d Difference) bool { return d.Way == Reconfigures })
}

// Reconfigured is the cluster as up leaves it, with the options that cluster.yaml has.
func (l Lab) Reconfigured() *config.Cluster {
	c := *l.After
	setOptions(&c, l.Described)
	return &c
}

// Reconfigure has change give the lab the options that cluster.yaml has. It gets what the lab was made with, and after that what earlier
// attempts, which were interrupted, wanted. Once it succeeds the options are what the lab was made with.
func (l Lab) Reconfigure(change func(was []*config.Cluster) error) error {
	made, err := l.Made()
	if err != nil {
		return err
	}
	attempts, err := l.attempts()
	if err != nil {
		return err
	}
	now := *made
	setOptions(&now, l.Described)
	text, err := now.YAML()
	if err != nil {
		return err
	}
	if err := l.Write(filepath.Join(reconfiguring, fmt.Sprintf("%d.yaml", len(attempts))), text); err != nil {
		return err
	}
	if err := change(append([]*config.Cluster{made}, attempts...)); err != nil {
		return err
	}
	if err := l.writeMade(&now); err != nil {
		return err
	}
	return os.RemoveAll(l.Path(reconfiguring))
}

// attempts are what earlier attempts wanted.
func (l Lab) attempts() (all []*config.Cluster, err error) {
	files, err := filepath.Glob(l.Path(reconfiguring, "*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		c, _, err := config.Parse(file, text)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}
