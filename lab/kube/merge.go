package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Entry is how a cluster appears in a person's kubeconfig.
type Entry struct {
	Owner string // marks the context, cluster and user, so that they are found again under any name
	Name  string // of all three
	Use   bool   // make it the current context; where there is none, it becomes it anyway
}

// ownerExtension is the extension, of each entry that was merged, that names its owner.
const ownerExtension = "k8slab"

// Merge returns a person's kubeconfig, which may be empty, with the cluster and the user of another one's current context as the entry. It
// replaces what the owner has there, and keeps that context's namespace. Names that somebody else has are an error.
func Merge(person, kubeconfig []byte, e Entry) ([]byte, error) {
	cluster, user, err := current(kubeconfig)
	if err != nil {
		return nil, err
	}
	return edit(person, func(cfg *clientcmdapi.Config) error {
		context := &clientcmdapi.Context{Cluster: e.Name, AuthInfo: e.Name}
		was := ownedContexts(cfg, e.Owner)
		for _, name := range was {
			context.Namespace = cfg.Contexts[name].Namespace
		}
		use := cfg.CurrentContext == "" || e.Use || slices.Contains(was, cfg.CurrentContext)
		removeOwned(cfg, e.Owner)
		if cfg.Contexts[e.Name] != nil || cfg.Clusters[e.Name] != nil || cfg.AuthInfos[e.Name] != nil {
			const next = "next: choose another name with --context, or remove them (kubectl config delete-context, delete-cluster, delete-user)"
			return fmt.Errorf("it has a context, a cluster or a user %s that is not this lab's; %s", e.Name, next)
		}
		context.Extensions, cluster.Extensions, user.Extensions = ownedBy(e.Owner), ownedBy(e.Owner), ownedBy(e.Owner)
		cfg.Contexts[e.Name], cfg.Clusters[e.Name], cfg.AuthInfos[e.Name] = context, cluster, user
		if use {
			cfg.CurrentContext = e.Name
		}
		return nil
	})
}

// Renew returns a person's kubeconfig with the owner's cluster and user as another one's current context has them. What the owner does not
// have there is not added.
func Renew(person, kubeconfig []byte, owner string) ([]byte, error) {
	cluster, user, err := current(kubeconfig)
	if err != nil {
		return nil, err
	}
	return edit(person, func(cfg *clientcmdapi.Config) error {
		for name, old := range cfg.Clusters {
			if owns(owner, old.Extensions) {
				cfg.Clusters[name] = cluster.DeepCopy()
				cfg.Clusters[name].Extensions = old.Extensions
			}
		}
		for name, old := range cfg.AuthInfos {
			if owns(owner, old.Extensions) {
				cfg.AuthInfos[name] = user.DeepCopy()
				cfg.AuthInfos[name].Extensions = old.Extensions
			}
		}
		return nil
	})
}

// Unmerge returns a person's kubeconfig without the owner's entries. If one was the current context, there is none then.
func Unmerge(person []byte, owner string) ([]byte, error) {
	return edit(person, func(cfg *clientcmdapi.Config) error {
		if slices.Contains(ownedContexts(cfg, owner), cfg.CurrentContext) {
			cfg.CurrentContext = ""
		}
		removeOwned(cfg, owner)
		return nil
	})
}

func current(kubeconfig []byte) (*clientcmdapi.Cluster, *clientcmdapi.AuthInfo, error) {
	cfg, cluster, err := currentCluster(kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	user, err := currentUser(cfg)
	return cluster, user, err
}

// edit returns the very same text if nothing in it changes.
func edit(text []byte, change func(*clientcmdapi.Config) error) ([]byte, error) {
	cfg, err := clientcmd.Load(text)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	before, err := clientcmd.Write(*cfg)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	if err := change(cfg); err != nil {
		return nil, err
	}
	after, err := clientcmd.Write(*cfg)
	if err != nil {
		return nil, fmt.Errorf("write kubeconfig: %w", err)
	}
	if bytes.Equal(before, after) {
		return text, nil
	}
	return after, nil
}

func ownedContexts(cfg *clientcmdapi.Config, owner string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(cfg.Contexts)) {
		if owns(owner, cfg.Contexts[name].Extensions) {
			names = append(names, name)
		}
	}
	return names
}

func removeOwned(cfg *clientcmdapi.Config, owner string) {
	maps.DeleteFunc(cfg.Contexts, func(_ string, c *clientcmdapi.Context) bool { return owns(owner, c.Extensions) })
	maps.DeleteFunc(cfg.Clusters, func(_ string, c *clientcmdapi.Cluster) bool { return owns(owner, c.Extensions) })
	maps.DeleteFunc(cfg.AuthInfos, func(_ string, u *clientcmdapi.AuthInfo) bool { return owns(owner, u.Extensions) })
}

// mark is the extension's content.
type mark struct {
	Lab string `json:"lab"`
}

func ownedBy(owner string) map[string]runtime.Object {
	text, _ := json.Marshal(mark{owner}) // a string always can be
	return map[string]runtime.Object{ownerExtension: &runtime.Unknown{Raw: text, ContentType: runtime.ContentTypeJSON}}
}

func owns(owner string, extensions map[string]runtime.Object) bool {
	var m mark
	raw, is := extensions[ownerExtension].(*runtime.Unknown)
	return is && json.Unmarshal(raw.Raw, &m) == nil && m.Lab == owner
}
