package kube

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

const fieldManager = "labctl"

// Apply applies every object of a YAML manifest in its order, server-side and by force, recording the hash of each object's document on it.
// It stops at the first failure; applying again is safe.
func (c *Client) Apply(ctx context.Context, manifest []byte) error {
	objects, err := parseManifest(manifest)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := c.applyObject(ctx, o); err != nil {
			return fmt.Errorf("apply %s: %w", o, err)
		}
	}
	return nil
}

func (c *Client) applyObject(ctx context.Context, o object) error {
	resource, err := c.resourceOf(ctx, o)
	if err != nil {
		return err
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	_, err = resource.Apply(ctx, o.GetName(), o.annotated(), options)
	return err
}

// UpToDate reports whether every object of a manifest exists as last applied
// from that same document. It does not look for changes made since by others.
func (c *Client) UpToDate(ctx context.Context, manifest []byte) (bool, error) {
	objects, err := parseManifest(manifest)
	if err != nil {
		return false, err
	}
	for _, o := range objects {
		if same, err := c.objectUpToDate(ctx, o); err != nil {
			return false, fmt.Errorf("compare %s: %w", o, err)
		} else if !same {
			return false, nil
		}
	}
	return true, nil
}

func (c *Client) objectUpToDate(ctx context.Context, o object) (bool, error) {
	resource, err := c.resourceOf(ctx, o)
	if meta.IsNoMatchError(err) {
		return false, nil // a kind that is not served has no objects
	}
	if err != nil {
		return false, err
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	live, err := resource.Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return live.GetDeletionTimestamp() == nil && live.GetAnnotations()[hashAnnotation] == o.hash, nil
}

// resourceOf finds where an object lives, giving a namespaced one without a namespace the default one.
func (c *Client) resourceOf(ctx context.Context, o object) (dynamic.ResourceInterface, error) {
	gvk := o.GroupVersionKind()
	found, err := c.lookUpKind(ctx, gvk)
	if err != nil {
		return nil, err
	}
	resource := c.dynamic.Resource(gvk.GroupVersion().WithResource(found.Name))
	if !found.Namespaced {
		return resource, nil
	}
	if o.GetNamespace() == "" {
		o.SetNamespace(metav1.NamespaceDefault)
	}
	return resource.Namespace(o.GetNamespace()), nil
}

// lookUpKind finds the resource of a kind, fetching each group version once. client-go's discovery takes no context and asks about every
// group, where one broken aggregated API fails them all; this asks only for what is needed.
func (c *Client) lookUpKind(ctx context.Context, gvk schema.GroupVersionKind) (metav1.APIResource, error) {
	gv := gvk.GroupVersion()
	c.mu.Lock()
	resources := c.resources[gv]
	c.mu.Unlock()
	if r, ok := findKind(resources, gvk.Kind); ok {
		return r, nil
	}
	// Not known, or a kind added since: a definition earlier in the manifest.
	resources, err := c.fetchResources(ctx, gv)
	if err != nil {
		return metav1.APIResource{}, err
	}
	c.mu.Lock()
	c.resources[gv] = resources
	c.mu.Unlock()
	if r, ok := findKind(resources, gvk.Kind); ok {
		return r, nil
	}
	return metav1.APIResource{}, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gv.Version}}
}

func (c *Client) fetchResources(ctx context.Context, gv schema.GroupVersion) ([]metav1.APIResource, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	list := &metav1.APIResourceList{}
	err := c.set.Discovery().RESTClient().Get().AbsPath(path).Do(ctx).Into(list)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("list resources of %s: %w", gv, err)
	}
	return list.APIResources, nil
}

func findKind(resources []metav1.APIResource, kind string) (metav1.APIResource, bool) {
	for _, r := range resources {
		if subresource := strings.Contains(r.Name, "/"); r.Kind == kind && !subresource {
			return r, true
		}
	}
	return metav1.APIResource{}, false
}
