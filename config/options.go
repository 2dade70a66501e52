package config

import (
	"maps"
	"slices"
)

// Fragment is a part of a document of Kubernetes, in that document's own field
// names. Its values are text, numbers, true or false, lists and mappings.
type Fragment = map[string]any

// Kubeadm is what kubeadm is told beside what labctl tells it. labctl merges it
// over its own. Only with MachinesLibvirt.
type Kubeadm struct {
	// Cluster, Init and Join are parts of kubeadm's ClusterConfiguration,
	// InitConfiguration and JoinConfiguration, v1beta4.
	Cluster Fragment `yaml:"cluster,omitempty"`
	Init    Fragment `yaml:"init,omitempty"`
	Join    Fragment `yaml:"join,omitempty"`
	// Kubelet is a part of the KubeletConfiguration of all nodes, v1beta1.
	Kubelet Fragment `yaml:"kubelet,omitempty"`
	// KubeProxy is a part of the KubeProxyConfiguration, v1alpha1.
	KubeProxy Fragment `yaml:"kube_proxy,omitempty"`
	// Patches are patches of the manifests that kubeadm writes, by the names of
	// kubeadm's patch files without .yaml: TARGET[SUFFIX][+TYPE], where TARGET is
	// etcd, kube-apiserver, kube-controller-manager, kube-scheduler or
	// corednsdeployment, and TYPE strategic (the default), merge or json.
	Patches map[string]any `yaml:"patches,omitempty"`
}

// Any tells whether kubeadm is told anything.
func (k Kubeadm) Any() bool {
	return len(k.Cluster)+len(k.Init)+len(k.Join)+len(k.Kubelet)+len(k.KubeProxy)+len(k.Patches) > 0
}

// Documents are the fragments of documents by their keys.
func (k Kubeadm) Documents() map[string]Fragment {
	return map[string]Fragment{"cluster": k.Cluster, "init": k.Init, "join": k.Join, "kubelet": k.Kubelet, "kube_proxy": k.KubeProxy}
}

// NodeOptions are settings of a node, or of all nodes of a role; default none.
// Only with MachinesLibvirt.
type NodeOptions struct {
	// Kubelet is a part of the node's KubeletConfiguration, v1beta1.
	Kubelet Fragment `yaml:"kubelet,omitempty"`
	// Labels are those that kubelet registers the Node with.
	Labels map[string]string `yaml:"labels,omitempty"`
	// Taints have the form KEY[=VALUE]:EFFECT. On a control plane they replace
	// kubeadm's own, so that with [] pods run there.
	Taints List[string] `yaml:"taints,omitempty"`
	// Disks are the sizes in GiB, 1 to 4096, of empty disks beside the
	// machine's own.
	Disks List[int] `yaml:"disks,omitempty"`
}

// List is a list that can be there and empty.
type List[T any] []T

// IsZero tells whether the list is absent. YAML leaves it out then.
func (l List[T]) IsZero() bool { return l == nil }

// Merge is the fragment over a document, both of which stay as they are.
// Mappings are merged, and so are lists whose items have a name, such as
// kubeadm's extraArgs. Every other value replaces the document's.
func Merge(document, over Fragment) Fragment {
	merged := maps.Clone(document)
	if merged == nil {
		merged = Fragment{}
	}
	for key, value := range over {
		merged[key] = mergeValue(merged[key], value)
	}
	return merged
}

func mergeValue(value, over any) any {
	if is, ok := over.(Fragment); ok {
		was, _ := value.(Fragment)
		return Merge(was, is)
	}
	was, _ := value.([]any)
	is, ok := over.([]any)
	if !ok || !named(was) || !named(is) {
		return over
	}
	kept := slices.DeleteFunc(slices.Clone(was), func(item any) bool {
		return slices.ContainsFunc(is, func(other any) bool { return nameOf(other) == nameOf(item) })
	})
	return append(kept, is...)
}

func named(list []any) bool {
	return !slices.ContainsFunc(list, func(item any) bool { return nameOf(item) == "" })
}

// nameOf is the name of an item of a list, "" for one without.
func nameOf(item any) string {
	o, _ := item.(Fragment)
	name, _ := o["name"].(string)
	return name
}
