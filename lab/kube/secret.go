package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EnsureSecret makes the Secret have exactly this data, and writes nothing when
// it has. Unlike Apply it records no hash, by which a guess could be checked.
func (c *Client) EnsureSecret(ctx context.Context, namespace, name string, data map[string][]byte) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	secrets := c.set.CoreV1().Secrets(namespace)
	live, err := secrets.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
		_, err = secrets.Create(ctx, made, metav1.CreateOptions{FieldManager: fieldManager})
	case err == nil && maps.EqualFunc(live.Data, data, slices.Equal):
		return nil
	case err == nil:
		live.Data = data
		_, err = secrets.Update(ctx, live, metav1.UpdateOptions{FieldManager: fieldManager})
	}
	if err != nil {
		return fmt.Errorf("write secret %s/%s: %w", namespace, name, err)
	}
	return nil
}
