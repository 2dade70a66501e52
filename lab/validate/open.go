package validate

import (
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"k8slab/lab/kube"
)

// Open makes the clients of a cluster without connecting. The kubeconfig is a file's path, or "" for what kubectl would take ($KUBECONFIG,
// ~/.kube/config); the context is one of its contexts, or "" for the current one. As with kubectl the file may name a program that gets
// credentials: it is the user's own. mutated, if not nil, is told of every request that may change the cluster before it is sent.
func Open(kubeconfig, context, image string, mutated func(what string)) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: context}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	kube.Prepare(config, mutated)
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client for %s: %w", config.Host, err)
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make dynamic client for %s: %w", config.Host, err)
	}
	as := func(user string, groups []string) (kubernetes.Interface, error) {
		other := rest.CopyConfig(config)
		other.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
		return kubernetes.NewForConfig(other)
	}
	return &Cluster{Kube: set, Dynamic: dyn, Image: image, Impersonate: as}, nil
}
