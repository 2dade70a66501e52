package validate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// The identity of a kubelet (kubernetes.io, "Using Node Authorization").
const (
	nodeUser  = "system:node:"
	nodeGroup = "system:nodes"
)

// nobodysSecret is the secret to ask for if no pod of another Node has one. It need not exist: authorization comes before the lookup.
const nobodysSecret = "k8slab-validate-none"

// nodeRoles are what kubeadm and Kubernetes bind to the group of all nodes, or to a node.
var nodeRoles = []string{
	"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
	"system:certificates.k8s.io:certificatesigningrequests:selfnodeserver",
	"kubeadm:kubelet-config", "kubeadm:nodes-kubeadm-config",
}

// actAs makes a client that acts as the node's kubelet. It first tries something that a kubelet may do: otherwise a client without any
// rights would seem to be refused for the right reason.
func (c *Cluster) actAs(ctx context.Context, node string) (kubernetes.Interface, error) {
	client, err := c.Impersonate(nodeUser+node, []string{nodeGroup})
	if err != nil {
		return nil, fmt.Errorf("act as %s%s: %w", nodeUser, node, err)
	}
	if _, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{}); err != nil {
		return nil, fmt.Errorf("act as %s%s, which may read its own Node: %w", nodeUser, node, err)
	}
	return client, nil
}

// secretsKept requires that a node's identity is refused a secret that only pods of other nodes use.
func (c *Cluster) secretsKept(ctx context.Context, nodes []corev1.Node) (Finding, error) {
	pods, err := c.Kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return Finding{}, fmt.Errorf("list pods: %w", err)
	}
	var t tally
	for _, n := range nodes {
		secret := foreignSecret(pods.Items, n.Name)
		evidence, allowed, err := c.mayRead(ctx, n.Name, secret)
		switch {
		case err != nil:
			return Finding{}, err
		case allowed:
			t.faults = append(t.faults, fmt.Sprintf("%s%s may read secret %s: %s", nodeUser, n.Name, secret, evidence))
		default:
			t.good = append(t.good, fmt.Sprintf("%s%s may not read secret %s: %s", nodeUser, n.Name, secret, evidence))
		}
	}
	return t.finding("kube-apiserver must run with --authorization-mode=Node,RBAC, and no role that is bound to a node or to " + nodeGroup +
		" may read secrets: `kubectl auth can-i --list --as=" + nodeUser + "NODE --as-group=" + nodeGroup + "`"), nil
}

// mayRead asks the authorizers, and then with a real request, whether a node's identity may read a secret.
func (c *Cluster) mayRead(ctx context.Context, node string, secret types.NamespacedName) (evidence string, allowed bool, err error) {
	review, err := c.Kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: nodeUser + node, Groups: []string{nodeGroup, "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "get", Version: "v1", Resource: "secrets", Namespace: secret.Namespace, Name: secret.Name,
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", false, fmt.Errorf("review the access of %s%s: %w", nodeUser, node, err)
	}
	if review.Status.Allowed {
		return "the authorizers allow it: " + review.Status.Reason, true, nil
	}
	if c.Impersonate == nil {
		return "the authorizers deny it", false, nil
	}
	client, err := c.actAs(ctx, node)
	if err != nil {
		return "", false, err
	}
	switch _, err := client.CoreV1().Secrets(secret.Namespace).Get(ctx, secret.Name, metav1.GetOptions{}); {
	case apierrors.IsForbidden(err):
		return "a request is refused (403)", false, nil
	case err == nil:
		return "a request was answered", true, nil
	case apierrors.IsNotFound(err):
		return "a request was allowed, and found nothing", true, nil
	default:
		return "", false, fmt.Errorf("read secret %s as %s%s: %w", secret, nodeUser, node, err)
	}
}

// foreignSecret is a secret that pods of other nodes use and no pod of the node names, nobodysSecret when there is none.
func foreignSecret(pods []corev1.Pod, node string) types.NamespacedName {
	own := map[string]string{} // namespace → what the node's pods there say
	for _, p := range pods {
		if p.Spec.NodeName == node {
			text, _ := json.Marshal(p.Spec) // a pod's specification always has a JSON form
			own[p.Namespace] += string(text)
		}
	}
	for _, p := range pods {
		if p.Spec.NodeName == node || p.Spec.NodeName == "" || p.DeletionTimestamp != nil {
			continue
		}
		for _, v := range p.Spec.Volumes {
			if v.Secret != nil && !strings.Contains(own[p.Namespace], strconv.Quote(v.Secret.SecretName)) {
				return types.NamespacedName{Namespace: p.Namespace, Name: v.Secret.SecretName}
			}
		}
	}
	return types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: nobodysSecret}
}

// restricted requires the admission plugin NodeRestriction: a node may not change another node. The request is a dry run.
func (c *Cluster) restricted(ctx context.Context, nodes []corev1.Node) (Finding, error) {
	if c.Impersonate == nil {
		return absent("only a request made as the node shows it, and these credentials are not used to act as others"), nil
	}
	all, err := c.nodes(ctx)
	if err != nil {
		return Finding{}, err
	}
	if len(all) < 2 {
		return absent("the cluster has one Node: there is no other that it could change"), nil
	}
	patch := []byte(`{"metadata":{"labels":{"` + ownerLabel + `":"restricted"}}}`)
	var t tally
	for _, n := range nodes {
		client, err := c.actAs(ctx, n.Name)
		if err != nil {
			return Finding{}, err
		}
		other := all[slices.IndexFunc(all, func(o corev1.Node) bool { return o.Name != n.Name })].Name
		options := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
		switch _, err := client.CoreV1().Nodes().Patch(ctx, other, types.MergePatchType, patch, options); {
		case apierrors.IsForbidden(err):
			t.good = append(t.good, fmt.Sprintf("%s%s may not label Node %s (403)", nodeUser, n.Name, other))
		case err == nil:
			t.faults = append(t.faults, fmt.Sprintf("%s%s may label Node %s", nodeUser, n.Name, other))
		default:
			return Finding{}, fmt.Errorf("label Node %s as %s%s (a dry run): %w", other, nodeUser, n.Name, err)
		}
	}
	return t.finding("kube-apiserver must run with --enable-admission-plugins=NodeRestriction"), nil
}

// nodeRights requires that no binding gives a node more rights than Kubernetes and kubeadm give to nodes.
func (c *Cluster) nodeRights(ctx context.Context, nodes []corev1.Node) (Finding, error) {
	cluster, err := c.Kube.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return Finding{}, fmt.Errorf("list clusterrolebindings: %w", err)
	}
	namespaced, err := c.Kube.RbacV1().RoleBindings("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return Finding{}, fmt.Errorf("list rolebindings: %w", err)
	}
	var t tally
	for _, b := range cluster.Items {
		if who := boundNode(b.Subjects, nodes); who != "" && !slices.Contains(nodeRoles, b.RoleRef.Name) {
			t.faults = append(t.faults, fmt.Sprintf("ClusterRoleBinding %s gives %s the role %s", b.Name, who, b.RoleRef.Name))
		}
	}
	for _, b := range namespaced.Items {
		if who := boundNode(b.Subjects, nodes); who != "" && !slices.Contains(nodeRoles, b.RoleRef.Name) {
			t.warnings = append(t.warnings, fmt.Sprintf("RoleBinding %s/%s gives %s the role %s there", b.Namespace, b.Name, who, b.RoleRef.Name))
		}
	}
	t.good = append(t.good, "no binding gives a node more than Kubernetes and kubeadm do")
	return t.finding("see what each role allows with `kubectl describe clusterrole ROLE`, and delete the bindings that nodes do not need"), nil
}

// boundNode is the first of the subjects that is one of the nodes, or the group of all nodes.
func boundNode(subjects []rbacv1.Subject, nodes []corev1.Node) string {
	for _, s := range subjects {
		if s.Kind == rbacv1.GroupKind && s.Name == nodeGroup {
			return "the group " + nodeGroup
		}
		if s.Kind == rbacv1.UserKind && slices.ContainsFunc(nodes, func(n corev1.Node) bool { return s.Name == nodeUser+n.Name }) {
			return s.Name
		}
	}
	return ""
}
