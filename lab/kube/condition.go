package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource names a kind of object.
type Resource = schema.GroupVersionResource

// NotFound tells whether an error says that the cluster has no such object.
func NotFound(err error) bool { return apierrors.IsNotFound(err) }

// ObjectReady tells why an object of a kind that is not Kubernetes' own is not Ready, in its controller's words. What it was before its
// last change does not count.
func (c *Client) ObjectReady(ctx context.Context, resource Resource, namespace, name string) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	what := fmt.Sprintf("%s %s/%s", resource.GroupResource(), namespace, name)
	o, err := c.dynamic.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get %s: %w", what, err)
	}
	observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	if observed < o.GetGeneration() {
		return fmt.Errorf("%s: generation %d not observed by its controller yet (at %d)", what, o.GetGeneration(), observed)
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		fields, _ := c.(map[string]any)
		switch {
		case fields["type"] != "Ready":
		case fields["status"] == string(metav1.ConditionTrue):
			return nil
		default:
			return fmt.Errorf("%s is not Ready: %v: %v", what, fields["reason"], fields["message"])
		}
	}
	return fmt.Errorf("%s has no condition Ready yet", what)
}
