package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// Marks are labels and taints of a Node.
type Marks struct {
	Labels map[string]string
	Taints []Taint
}

// Taint is one taint of a Node.
type Taint struct{ Key, Value, Effect string }

// Mark gives a Node its marks instead of those that it had, or may have, for the same reason. What others gave it stays.
func (c *Client) Mark(ctx context.Context, node string, now Marks, was ...Marks) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		limited, cancel := c.bound(ctx)
		defer cancel()
		k, err := c.set.CoreV1().Nodes().Get(limited, node, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read node %s: %w", node, err)
		}
		labels := map[string]any{}
		for key := range k.Labels {
			labels[key] = nil // unless it stays
		}
		if !remark(k, now, was...) {
			return nil
		}
		for key, value := range k.Labels {
			labels[key] = value
		}
		patch, err := json.Marshal(map[string]any{ // the version, because a list is replaced as a whole
			"metadata": map[string]any{"labels": labels, "resourceVersion": k.ResourceVersion}, "spec": map[string]any{"taints": k.Spec.Taints},
		})
		if err != nil {
			return err
		}
		return c.patchNode(ctx, node, string(patch))
	})
}

// remark changes the Node, and tells whether that is a change.
func remark(k *corev1.Node, now Marks, was ...Marks) bool {
	labels := maps.Clone(k.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.DeleteFunc(labels, func(key, value string) bool {
		return slices.ContainsFunc(was, func(w Marks) bool { had, ours := w.Labels[key]; return ours && had == value })
	})
	maps.Copy(labels, now.Labels)
	taints := slices.DeleteFunc(slices.Clone(k.Spec.Taints), func(t corev1.Taint) bool {
		is := Taint{t.Key, t.Value, string(t.Effect)}
		ours := slices.ContainsFunc(was, func(w Marks) bool { return slices.Contains(w.Taints, is) })
		return ours && !slices.Contains(now.Taints, is) || slices.ContainsFunc(now.Taints, func(n Taint) bool {
			return n != is && n.Key == is.Key && n.Effect == is.Effect // a Node has one value of each
		})
	})
	for _, t := range now.Taints {
		if !slices.ContainsFunc(taints, func(is corev1.Taint) bool { return t == Taint{is.Key, is.Value, string(is.Effect)} }) {
			taints = append(taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
		}
	}
	changed := !maps.Equal(labels, k.Labels) || len(taints) != len(k.Spec.Taints) ||
		slices.ContainsFunc(taints, func(t corev1.Taint) bool { return !slices.Contains(k.Spec.Taints, t) })
	k.Labels, k.Spec.Taints = labels, taints
	return changed
}
