package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"k8slab/config"
	"k8slab/lab/image"
	"k8slab/lab/provision"
	"k8slab/lab/session"
)

// withOptions are the documents of `kubeadm init` with what cluster.yaml has for each.
func withOptions(s *session.Session, init, cluster, kubelet, proxy object) []any {
	k := s.Cluster.Kubernetes
	if len(k.FeatureGates) > 0 {
		gates := object{}
		for name, on := range k.FeatureGates {
			gates[name] = on
		}
		for _, program := range config.ControlPlanePrograms {
			cluster = config.Merge(cluster, object{program.Key: object{"extraArgs": arguments(gateArgument(k))}})
		}
		kubelet = config.Merge(kubelet, object{"featureGates": gates})
		proxy = config.Merge(proxy, object{"featureGates": gates})
	}
	return []any{
		config.Merge(init, k.Kubeadm.Init), config.Merge(cluster, k.Kubeadm.Cluster),
		config.Merge(kubelet, k.Kubeadm.Kubelet), config.Merge(proxy, k.Kubeadm.KubeProxy),
	}
}

// gateArgument has all feature gates of cluster.yaml.
func gateArgument(k config.Kubernetes) string {
	var gates []string
	for _, name := range k.GateNames() {
		gates = append(gates, fmt.Sprintf("%s=%v", name, k.FeatureGates[name]))
	}
	return "feature-gates=" + strings.Join(gates, ",")
}

// patched has kubeadm patch what it makes with the node's own patches. Otherwise an emulated control plane gets those of the image: their
// probes wait longer, so that kubelet does not kill an API server or an etcd that is only slow.
func patched(s *session.Session, n config.Node, configuration object) object {
	switch {
	case len(provision.Patches(s, n)) > 0:
		configuration["patches"] = object{"directory": provision.PatchesDir}
	case s.Emulated() && n.Role == config.ControlPlane:
		configuration["patches"] = object{"directory": image.SlowProbes}
	}
	return configuration
}

// registered are kubelet's arguments for what its Node gets when it registers.
func registered(o config.NodeOptions) (arguments []string) {
	var labels []string
	for _, key := range slices.Sorted(maps.Keys(o.Labels)) {
		labels = append(labels, key+"="+o.Labels[key])
	}
	if len(labels) > 0 {
		arguments = append(arguments, "node-labels="+strings.Join(labels, ","))
	}
	if len(o.Taints) > 0 {
		arguments = append(arguments, "register-with-taints="+strings.Join(o.Taints, ","))
	}
	return arguments
}

// taints are what kubeadm gives a control plane's Node instead of its own taint.
func taints(o config.NodeOptions) []any {
	all := []any{}
	for _, text := range o.Taints {
		t, _ := config.ParseTaint(text)
		all = append(all, object{"key": t.Key, "value": t.Value, "effect": t.Effect})
	}
	return all
}

// OwnKubelet is kubelet's configuration, as kubeadm makes it of the cluster's alone, with the worker's own settings. On a control plane
// kubeadm adds them itself, from the patches there.
func OwnKubelet(s *session.Session, n config.Node, made string) (string, error) {
	own := s.Cluster.OptionsOf(n).Kubelet
	if made == "" || len(own) == 0 || n.Role == config.ControlPlane {
		return made, nil
	}
	var document object
	if err := yaml.Unmarshal([]byte(made), &document); err != nil {
		return "", err
	}
	text, err := yaml.Marshal(config.Merge(document, own))
	return string(text), err
}
