package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// PodReady reports whether a pod is ready and is not being deleted.
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

// Resource names a kind of object.
type Resource = schema.GroupVersionResource

// NotFound tells whether an error says that the cluster has no such object.
func NotFound(err error) bool { return apierrors.IsNotFound(err) }

// ObjectReady says why an object of a custom kind is not Ready, in its controller's words. A condition from before the object's last change
// does not count.
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

// The interface of `labnode probe`, the pod that proves the pod network: it answers with what it cannot reach.
const (
	ProbePort          = 8080
	ProbePath          = "/check"
	ProbeTokenVariable = "K8SLAB_TOKEN" // in its environment; the question must show the token
)

// ProbeAnswer reads what a probe cannot reach.
func ProbeAnswer(body io.Reader) (failures []string, err error) {
	if err := json.NewDecoder(io.LimitReader(body, 1<<20)).Decode(&failures); err != nil {
		return nil, fmt.Errorf("read the probe's answer: %w", err)
	}
	return failures, nil
}
