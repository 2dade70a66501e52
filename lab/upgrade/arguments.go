package upgrade

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"k8slab/config"
	"k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

// Where a node has the arguments of Kubernetes' programs.
const (
	manifests     = "/etc/kubernetes/manifests/"
	kubeletFlags  = "/var/lib/kubelet/kubeadm-flags.env"
	kubeletConfig = "/var/lib/kubelet/config.yaml"
)

var components = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// arguments has the new programs read what a node starts the old ones with: flags and feature gates that are gone.
func (u *upgrade) arguments(ctx context.Context) ([]symptom.Finding, error) {
	return u.ofEach(u.Cluster.Members(), func(n config.Node) ([]symptom.Finding, error) {
		all, err := u.kubeletArguments(ctx, n)
		for _, program := range components {
			if err != nil || n.Role != config.ControlPlane {
				break
			}
			var f *symptom.Finding
			if f, err = u.componentArguments(ctx, n, program); f != nil {
				all = append(all, *f)
			}
		}
		return all, err
	})
}

// componentArguments is about a component of the control plane, nil if its new version takes what the manifest has.
func (u *upgrade) componentArguments(ctx context.Context, n config.Node, program string) (*symptom.Finding, error) {
	file := manifests + program + ".yaml"
	text, err := u.Nodes[n.Name].Read(ctx, "cat", file)
	if err != nil {
		return nil, err
	}
	pod, err := kube.ReadStaticPod([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", n.Name, file, err)
	}
	command := pod.Containers[0].Command
	complaint := u.image.CheckArguments(ctx, program, command[min(1, len(command)):]...)
	if complaint == nil {
		return nil, nil
	}
	f := found(symptom.FlagRemoved, symptom.Fail, n.Name, file, "%s of %s does not take it: %v", program, u.options.Version, complaint)
	return &f, nil
}

func (u *upgrade) kubeletArguments(ctx context.Context, n config.Node) (all []symptom.Finding, err error) {
	text, err := u.Nodes[n.Name].Read(ctx, "sh", "-c", `cat "$@" 2>/dev/null || true`, "sh", kubeletFlags, "/etc/default/kubelet", "/etc/sysconfig/kubelet")
	if err != nil {
		return nil, err
	}
	configuration, err := u.Nodes[n.Name].Read(ctx, "cat", kubeletConfig)
	if err != nil {
		return nil, err
	}
	var has struct {
		FeatureGates map[string]bool `json:"featureGates"`
	}
	if err := yaml.Unmarshal([]byte(configuration), &has); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", n.Name, kubeletConfig, err)
	}
	var gates []string
	for _, name := range slices.Sorted(maps.Keys(has.FeatureGates)) {
		gates = append(gates, fmt.Sprintf("%s=%v", name, has.FeatureGates[name]))
	}
	for source, argv := range map[string][]string{kubeletFlags: join.KubeletArguments(text), kubeletConfig: {"--feature-gates=" + strings.Join(gates, ",")}} {
		if complaint := u.image.CheckArguments(ctx, "kubelet", argv...); complaint != nil {
			all = append(all, found(symptom.KubeletFlagRemoved, symptom.Fail, n.Name, source, "kubelet of %s does not take it: %v", u.options.Version, complaint))
		}
	}
	return all, nil
}
