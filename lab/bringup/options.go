package bringup

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8slab/config"
	"k8slab/lab/cluster"
)

// describeCheck is the check of what cluster.yaml has for programs of Kubernetes.
func describeCheck(c *config.Cluster) []Step {
	if !cluster.HasOptions(c) {
		return nil
	}
	return []Step{{
		Action: "check feature gates, kubernetes.kubeadm and settings of kubelet with the programs of Kubernetes " + c.Kubernetes.Version,
		After:  "the node image", done: func(s present) bool { return s.made(c) },
	}}
}

// disks are the sizes of the node's disks.
func disks(c *config.Cluster, n config.Node) string {
	text := fmt.Sprintf("%d GiB", c.Resource(n.Role).Disk)
	for _, size := range c.OptionsOf(n).Disks {
		text += fmt.Sprintf(" + %d GiB", size)
	}
	return text
}

// clusterOptions are what of cluster.yaml goes into the whole cluster.
func clusterOptions(k config.Kubernetes) (all []string) {
	for _, name := range k.GateNames() {
		all = append(all, fmt.Sprintf("feature gate %s=%v", name, k.FeatureGates[name]))
	}
	return append(all, fragments(k.Kubeadm, "cluster", "kubelet", "kube_proxy")...)
}

// nodeOptions are what of cluster.yaml goes into the node; the document is the one that kubeadm gets with its verb, "" for none.
func nodeOptions(c *config.Cluster, n config.Node, document string) []string {
	all, o := fragments(c.Kubernetes.Kubeadm, document), c.OptionsOf(n)
	for _, name := range slices.Sorted(maps.Keys(c.Kubernetes.Kubeadm.Patches)) {
		if n.Role == config.ControlPlane {
			all = append(all, "patch "+name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Kubelet)) {
		all = append(all, "kubelet's own "+name)
	}
	for _, key := range slices.Sorted(maps.Keys(o.Labels)) {
		all = append(all, "label "+key+"="+o.Labels[key])
	}
	for _, taint := range o.Taints {
		all = append(all, "taint "+taint)
	}
	if n.Role == config.ControlPlane && o.Taints != nil && len(o.Taints) == 0 {
		all = append(all, "no taint")
	}
	return all
}

func fragments(k config.Kubeadm, keys ...string) (all []string) {
	for _, key := range keys {
		if len(k.Documents()[key]) > 0 {
			all = append(all, "kubernetes.kubeadm."+key)
		}
	}
	return all
}

// with is the action and the options that go into it.
func with(action string, options ...string) string {
	if len(options) == 0 {
		return action
	}
	return action + ", with " + strings.Join(options, ", ")
}
