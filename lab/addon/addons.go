package addon

import (
	"fmt"
	"slices"
	"strings"

	"k8slab/config"
)

// catalogue has all add-ons, in alphabetical order.
var catalogue = []Addon{
	{
		Name:      "flux",
		Purpose:   "Flux, which applies what the Git repository has",
		Needs:     []string{"git"},
		Images:    []string{"k8slab/source-controller:lab", "k8slab/kustomize-controller:lab"},
		Workloads: []Workload{{Deployment, "flux-system", "source-controller"}, {Deployment, "flux-system", "kustomize-controller"}},
	},
	{
		Name:      "git",
		Purpose:   "a Git repository over HTTP, with the configuration of the lab's nodes",
		Images:    []string{"k8slab/git:lab"},
		Workloads: []Workload{{Deployment, "gitops", "git"}},
	},
	{
		Name:      "load-balancer",
		Purpose:   "addresses for Services of type LoadBalancer, which MetalLB announces",
		Images:    []string{"k8slab/metallb-controller:lab", "k8slab/metallb-speaker:lab"},
		Workloads: []Workload{{Deployment, "metallb-system", "controller"}, {DaemonSet, "metallb-system", "speaker"}},
	},
	{
		Name:      "local-path",
		Purpose:   "storage: volumes in a directory of the node that a pod runs on (StorageClass local-path)",
		Images:    []string{"k8slab/local-path-provisioner:lab", "k8slab/busybox:lab"},
		Workloads: []Workload{{Deployment, "local-path-storage", "local-path-provisioner"}},
	},
	{
		Name:      "metrics-server",
		Purpose:   "CPU and memory of nodes and pods (kubectl top)",
		Images:    []string{"k8slab/metrics-server:lab"},
		Workloads: []Workload{{Deployment, "kube-system", "metrics-server"}},
	},
	{
		Name:      "node-exporter",
		Purpose:   "metrics of every node, also those in its directory /var/lib/k8slab/textfile",
		Images:    []string{"k8slab/node-exporter:lab"},
		Workloads: []Workload{{DaemonSet, "monitoring", "node-exporter"}},
	},
	{
		Name:      "prometheus",
		Purpose:   "Prometheus with the metrics of nodes, kubelets and API servers, and alert rules",
		Needs:     []string{"node-exporter"}, // whose manifest has the namespace, and without which its alerts see nothing
		Images:    []string{"k8slab/prometheus:lab"},
		Workloads: []Workload{{Deployment, "monitoring", "prometheus"}},
	},
	{
		Name:    "proxy",
		Purpose: "the proxy of network.proxy in the environment of every new pod (Kubernetes 1.36 and later)",
	},
	{
		Name:      "registry",
		Purpose:   "a registry for your own images, which are " + config.LabRegistry + "/NAME on nodes and, while `labctl open registry` runs, here",
		Images:    []string{"k8slab/registry:lab"},
		Workloads: []Workload{{Deployment, "registry", "registry"}},
	},
	{
		Name:    "sops",
		Purpose: "secrets in the Git repository, encrypted with SOPS and age, which Flux decrypts",
		Needs:   []string{"flux"},
	},
}

// All are all add-ons, in alphabetical order.
func All() []Addon { return slices.Clone(catalogue) }

// Resolve returns the named add-ons and those that they need, each once and after what it needs. Several unknown names are one error.
func Resolve(names []string) ([]Addon, error) {
	all := map[string]Addon{}
	var known, unknown []string
	for _, a := range All() {
		all[a.Name] = a
		known = append(known, a.Name)
	}
	for _, name := range names {
		if _, ok := all[name]; !ok {
			unknown = append(unknown, fmt.Sprintf("%q%s", name, config.DidYouMean(name, known)))
		}
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("no add-on %s; there are %s", strings.Join(unknown, ", "), strings.Join(known, ", "))
	}
	var resolved []Addon
	var add func(name string)
	add = func(name string) {
		if slices.ContainsFunc(resolved, func(a Addon) bool { return a.Name == name }) {
			return
		}
		for _, needed := range all[name].Needs {
			add(needed)
		}
		resolved = append(resolved, all[name])
	}
	for _, name := range names {
		add(name)
	}
	return resolved, nil
}
