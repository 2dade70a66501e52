package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

// Ready reports whether the API server says it is ready, naming the checks that fail if it does not.
func (c *Client) Ready(ctx context.Context) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	failing, err := Readyz(ctx, c.set, "")
	if err == nil && len(failing) > 0 {
		err = errors.New("api server is not ready: " + strings.Join(failing, ", "))
	}
	return err
}

// Readyz asks the API server whether it is ready, or one part of it such as "/etcd". failing are the parts that are not, such as "etcd
// failed: reason withheld", or else what it answered. It is an error if it did not answer.
func Readyz(ctx context.Context, set kubernetes.Interface, part string) (failing []string, err error) {
	status := 0
	request := set.Discovery().RESTClient().Get().AbsPath("/readyz"+part).Param("verbose", "")
	body, err := request.MaxRetries(0).Do(ctx).StatusCode(&status).Raw()
	switch status {
	case 0:
		return nil, fmt.Errorf("ask the API server whether it is ready: %w", err)
	case http.StatusOK:
		return nil, nil
	}
	for line := range strings.Lines(string(body)) {
		if check, ok := strings.CutPrefix(strings.TrimSpace(line), "[-]"); ok {
			failing = append(failing, check)
		}
	}
	if len(failing) == 0 {
		failing = []string{fmt.Sprintf("it answered %d: %v", status, err)}
	}
	return failing, nil
}

// NodeCondition returns a condition of a Node. One that was never reported has no status, and a message that says so.
func NodeCondition(n *corev1.Node, kind corev1.NodeConditionType) corev1.NodeCondition {
	for _, cond := range n.Status.Conditions {
		if cond.Type == kind {
			return cond
		}
	}
	return corev1.NodeCondition{Type: kind, Message: fmt.Sprintf("no %s condition reported", kind)}
}

// NodeReady returns nil if a Node is Ready, and otherwise what its kubelet says.
func NodeReady(n *corev1.Node) error {
	cond := NodeCondition(n, corev1.NodeReady)
	if cond.Status == corev1.ConditionTrue {
		return nil
	}
	return fmt.Errorf("%s is not Ready: %s", n.Name, because(cond.Reason, cond.Message))
}

// PodReady reports whether a pod is ready, and stays.
func PodReady(p *corev1.Pod) bool {
	cond := condition(p, corev1.PodReady)
	return p.DeletionTimestamp == nil && cond != nil && cond.Status == corev1.ConditionTrue
}

// DeploymentPods counts the ready pods of a Deployment's present template and the pods wanted. A status that lags behind the spec is an
// error, since its counts are those of another spec.
func DeploymentPods(d *appsv1.Deployment) (ready, want int, err error) {
	if d.Status.ObservedGeneration < d.Generation {
		return 0, 0, notObserved("deployment", d.Namespace, d.Name, d.Generation, d.Status.ObservedGeneration)
	}
	want = 1 // the API's default
	if d.Spec.Replicas != nil {
		want = int(*d.Spec.Replicas)
	}
	// While rolling out, ready replicas of the old template also count as ready.
	return int(min(d.Status.ReadyReplicas, d.Status.UpdatedReplicas)), want, nil
}

// DeploymentReady returns nil if a Deployment has pods, all of them ready.
func (c *Client) DeploymentReady(ctx context.Context, namespace, name string) error {
	ready, want, err := c.Deployment(ctx, namespace, name)
	return allReady("deployment "+namespace+"/"+name, ready, want, err)
}

// DaemonSetReady returns nil if a DaemonSet has pods, all of them ready.
func (c *Client) DaemonSetReady(ctx context.Context, namespace, name string) error {
	ready, want, err := c.DaemonSet(ctx, namespace, name)
	return allReady("daemonset "+namespace+"/"+name, ready, want, err)
}

func allReady(what string, ready, want int, err error) error {
	if err == nil && (want == 0 || ready < want) {
		err = fmt.Errorf("%s: %d of %d pods ready", what, ready, want)
	}
	return err
}
