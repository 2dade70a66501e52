package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Ready returns why the object is not Ready, by the conditions in its status as
// the conventions of the API have them: none, one of an earlier generation or
// one that is not True. group, version and resource are those of its kind.
func (c *Client) ObjectReady(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	o, err := c.dynamic.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get %s %s/%s: %w", resource.Resource, namespace, name, err)
	}
	if why := notReady(o); why != "" {
		return fmt.Errorf("%s %s/%s is not Ready: %s", o.GetKind(), namespace, name, why)
	}
	return nil
}
