package validate

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8slab/lab/kube"
)

const controlPlaneLabel = "node-role.kubernetes.io/control-plane"

// check makes a method a Check.
func check(area Area, name string, look func(ctx context.Context) (Finding, error)) Check {
	return Check{Area: area, Name: name, Look: look}
}

// try makes a method that makes test objects a Check.
func try(area Area, name string, look func(ctx context.Context) (Finding, error)) Check {
	return Check{Area: area, Name: name, Look: look, Tries: true}
}

// nodes lists the Nodes that run Linux, by name.
func (c *Cluster) nodes(ctx context.Context) ([]corev1.Node, error) {
	list, err := c.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(n corev1.Node) bool {
		os := n.Labels[corev1.LabelOSStable]
		return os != "" && os != string(corev1.Linux)
	}), nil
}

// tested are the Nodes that a check is about: the named one, or all.
func (c *Cluster) tested(ctx context.Context, name string) ([]corev1.Node, error) {
	nodes, err := c.nodes(ctx)
	if err != nil || name == "" {
		return nodes, err
	}
	i := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("the cluster has no Linux Node %s", name)
	}
	return nodes[i : i+1], nil
}

// where is the part of a check's name that says which Nodes it is about.
func where(node string) string {
	if node == "" {
		return "every Node"
	}
	return node
}

// takesPods reports whether pods that tolerate nothing are placed on the Node.
func takesPods(n *corev1.Node) bool {
	return !n.Spec.Unschedulable && !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	})
}

func address(n *corev1.Node) string {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	return ""
}

// podsOf are the pods of a DaemonSet or Deployment.
func (c *Cluster) podsOf(ctx context.Context, namespace string, selector *metav1.LabelSelector) ([]corev1.Pod, error) {
	list, err := c.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(selector)})
	if err != nil {
		return nil, fmt.Errorf("list pods of namespace %s: %w", namespace, err)
	}
	return list.Items, nil
}

// readyOn counts the Nodes with a ready pod of one of the DaemonSets; for the others it says what is wrong.
func (c *Cluster) readyOn(ctx context.Context, sets []appsv1.DaemonSet, nodes []corev1.Node) (t tally, err error) {
	var pods []corev1.Pod
	for _, set := range sets {
		of, err := c.podsOf(ctx, set.Namespace, set.Spec.Selector)
		if err != nil {
			return t, err
		}
		pods = append(pods, of...)
	}
	for _, n := range nodes {
		var there *corev1.Pod
		for i, p := range pods {
			if p.Spec.NodeName == n.Name && (there == nil || kube.PodReady(&p)) {
				there = &pods[i]
			}
		}
		switch {
		case there == nil:
			t.faults = append(t.faults, fmt.Sprintf("%s: no pod of DaemonSet %s/%s", n.Name, sets[0].Namespace, sets[0].Name))
		case !kube.PodReady(there):
			t.faults = append(t.faults, fmt.Sprintf("%s: pod %s/%s is not ready: %s", n.Name, there.Namespace, there.Name, c.why(ctx, there)))
		default:
			t.good = append(t.good, n.Name)
		}
	}
	return t, nil
}
