package kube

import (
	"context"
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

// Mark gives a Node its marks instead of those that it had for the same reason. What others gave it stays.
func (c *Client) Mark(ctx context.Context, node string, was, now Marks) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		limited, cancel := c.bound(ctx)
		defer cancel()
		k, err := c.set.CoreV1().Nodes().Get(limited, node, metav1.GetOptions{})
		if err != nil || !remark(k, was, now) {
			return err
		}
		_, err = c.set.CoreV1().Nodes().Update(limited, k, metav1.UpdateOptions{FieldManager: fieldManager})
		return err
	})
	if err != nil {
		return fmt.Errorf("change node %s: %w", node, err)
	}
	return nil
}

// remark changes the Node, and tells whether that is a change.
func remark(k *corev1.Node, was, now Marks) bool {
	labels := maps.Clone(k.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.DeleteFunc(labels, func(key, value string) bool { had, ours := was.Labels[key]; return ours && had == value })
	maps.Copy(labels, now.Labels)
	taints := slices.DeleteFunc(slices.Clone(k.Spec.Taints), func(t corev1.Taint) bool {
		is := Taint{t.Key, t.Value, string(t.Effect)}
		return slices.Contains(was.Taints, is) && !slices.Contains(now.Taints, is) || slices.ContainsFunc(now.Taints, func(n Taint) bool {
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
