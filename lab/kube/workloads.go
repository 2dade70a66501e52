package kube

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Deployment counts pods as DeploymentPods does.
func (c *Client) Deployment(ctx context.Context, namespace, name string) (ready, want int, err error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	d, err := c.set.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return 0, 0, fmt.Errorf("get deployment %s/%s: %w", namespace, name, err)
	}
	return DeploymentPods(d)
}

// DaemonSet counts the ready pods of a daemon set's present template and the pods wanted. A status that lags behind the spec is an error.
func (c *Client) DaemonSet(ctx context.Context, namespace, name string) (ready, want int, err error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	d, err := c.set.AppsV1().DaemonSets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return 0, 0, fmt.Errorf("get daemonset %s/%s: %w", namespace, name, err)
	}
	if d.Status.ObservedGeneration < d.Generation {
		return 0, 0, notObserved("daemonset", namespace, name, d.Generation, d.Status.ObservedGeneration)
	}
	count := d.Status.NumberReady
	// With OnDelete old pods stay until someone deletes them: they count.
	if d.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType {
		count = min(count, d.Status.UpdatedNumberScheduled)
	}
	return int(count), int(d.Status.DesiredNumberScheduled), nil
}

func notObserved(kind, namespace, name string, generation, observed int64) error {
	return fmt.Errorf("%s %s/%s: generation %d not observed by its controller yet (at %d)",
		kind, namespace, name, generation, observed)
}

// Service returns a service's cluster address, "None" for a headless one.
func (c *Client) Service(ctx context.Context, namespace, name string) (clusterIP string, err error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	s, err := c.set.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("get service %s/%s: %w", namespace, name, err)
	}
	return s.Spec.ClusterIP, nil
}
