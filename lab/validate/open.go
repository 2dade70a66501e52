package validate

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"k8slab/lab/kube"
)

// Open makes the clients of a cluster without connecting. The kubeconfig is a file's path, or "" for what kubectl would take ($KUBECONFIG,
// ~/.kube/config); in is one of its contexts, or "" for the current one. As with kubectl the file may name a program that gets
// credentials: it is the user's own. mutated, if not nil, is told of every request that may change the cluster before it is sent.
func Open(kubeconfig, in, image string, mutated func(what string)) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: in}
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
	authority, err := kube.Authority(config)
	if err != nil {
		return nil, err
	}
	return &Cluster{Kube: set, Dynamic: dyn, Image: image, Impersonate: as, authority: authority}, nil
}

// Identity is a UUID that identifies a cluster. It is made of the UID of the namespace kube-system and the keys that authenticate the
// server, so that another server cannot pretend to be the cluster by repeating its UID.
func (c *Cluster) Identity(ctx context.Context) (string, error) {
	if len(c.authority) == 0 {
		return "", errors.New("the cluster's identity needs what vouches for its server")
	}
	system, err := c.Kube.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read the cluster's identity (the UID of namespace kube-system): %w", err)
	}
	uid, err := uuid.Parse(string(system.UID))
	if err != nil {
		return "", fmt.Errorf("the UID of namespace kube-system, %.80q, is not a UUID", system.UID)
	}
	return uuid.NewSHA1(uid, c.authority).String(), nil
}
