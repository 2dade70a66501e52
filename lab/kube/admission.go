package kube

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Rejection is an answer of admission that keeps an object out of the cluster.
type Rejection struct {
	By      string // the webhook or policy, with the object that configures it, as far as it is known
	Owner   string // that object, as kubectl takes it: KIND NAME; "" when it is not known
	Silent  bool   // the webhook did not answer, and its configuration says that nothing passes then
	Message string // the API server's

	webhook string // its name, "" of a policy
}

// The API server's words for it (k8s.io/apiserver 1.31 to 1.37: webhook/errors/statuserror.go, util/webhook/error.go, policy/validating/
// dispatcher.go, policy/generic/policy_dispatcher.go).
var (
	deniedByWebhook = regexp.MustCompile(`admission webhook "([^"]+)" denied the request`)
	silentWebhook   = regexp.MustCompile(`failed calling webhook "([^"]+)"`)
	deniedByPolicy  = regexp.MustCompile(`(?i)policy ['"]([^'"]+)['"](?: with binding ['"]([^'"]+)['"])? denied request`)
)

// RejectsNode asks with a dry run whether admission lets a kubelet register a Node of this name, and returns what rejects it, nil for
// nothing. The request has the kubelet's own identity, because webhooks and policies may judge by it. It is an error if that cannot be
// known, for example because a webhook takes no dry runs.
func (c *Client) RejectsNode(ctx context.Context, name string) (*Rejection, error) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
	}}}
	request := c.set.CoreV1().RESTClient().Post().Resource("nodes").
		SetHeader("Impersonate-User", NodeUser+name).SetHeader("Impersonate-Group", nodesGroup, "system:authenticated").Body(node)
	return c.rejects(ctx, "node "+name+" may register", request)
}

// RejectsPod asks with a dry run whether admission lets a plain pod into the namespace of the cluster's own, as RejectsNode does.
func (c *Client) RejectsPod(ctx context.Context, image string) (*Rejection, error) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "k8slab-dry-run"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "none", Image: image}},
	}}
	request := c.set.CoreV1().RESTClient().Post().Namespace(metav1.NamespaceSystem).Resource("pods").Body(pod)
	return c.rejects(ctx, "a pod may be made in "+metav1.NamespaceSystem, request)
}

// rejects sends the request as a dry run.
func (c *Client) rejects(ctx context.Context, what string, request *rest.Request) (*Rejection, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	dryRun := &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	err := request.VersionedParams(dryRun, scheme.ParameterCodec).MaxRetries(0).Do(ctx).Error()
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil, nil
	}
	rejection := rejectionOf(err)
	if rejection == nil {
		return nil, fmt.Errorf("ask whether %s: %w", what, err)
	}
	if rejection.Owner = c.webhookOwner(ctx, rejection.webhook); rejection.Owner != "" {
		rejection.By += " of " + rejection.Owner
	}
	return rejection, nil
}

// rejectionOf reads the API server's answer; nil when it says nothing of admission.
func rejectionOf(err error) *Rejection {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return nil
	}
	text := status.ErrStatus.Message
	if m := deniedByWebhook.FindStringSubmatch(text); m != nil {
		return &Rejection{By: "webhook " + m[1], Message: text, webhook: m[1]}
	}
	if m := silentWebhook.FindStringSubmatch(text); m != nil {
		return &Rejection{By: "webhook " + m[1], Silent: true, Message: text, webhook: m[1]}
	}
	if m := deniedByPolicy.FindStringSubmatch(text); m != nil {
		by := "policy " + m[1]
		if m[2] != "" {
			by += " with binding " + m[2]
		}
		return &Rejection{By: by, Message: text}
	}
	return nil
}

// webhookOwner names the object that configures a webhook, "" when none is found.
func (c *Client) webhookOwner(ctx context.Context, webhook string) string {
	if webhook == "" {
		return ""
	}
	registration := c.set.AdmissionregistrationV1()
	if list, err := registration.ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{}); err == nil {
		for _, o := range list.Items {
			if slices.ContainsFunc(o.Webhooks, func(w admissionv1.ValidatingWebhook) bool { return w.Name == webhook }) {
				return "ValidatingWebhookConfiguration " + o.Name
			}
		}
	}
	if list, err := registration.MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{}); err == nil {
		for _, o := range list.Items {
			if slices.ContainsFunc(o.Webhooks, func(w admissionv1.MutatingWebhook) bool { return w.Name == webhook }) {
				return "MutatingWebhookConfiguration " + o.Name
			}
		}
	}
	return ""
}
