package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pod is what the cluster records about a pod.
type Pod struct {
	Namespace string
	Name      string
	Node      string
	IP        string
	Phase     string
	Ready     bool
	Reason    string // why it is not ready; empty for one that completed
	Exited    bool   `json:",omitempty"` // that is a container of it that ended with an error
	Deleting  bool
	UID       string
	Version   string         `json:",omitempty"` // the tag of its first image, if that is a version
	Missing   []MissingImage `json:",omitempty"` // images that its containers cannot get
}

// Pods lists the pods that match a label selector; an empty namespace is every namespace, an empty selector every pod.
func (c *Client) Pods(ctx context.Context, namespace, labelSelector string) ([]Pod, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	list, err := c.set.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: labelSelector})
	if err != nil {
		return nil, fmt.Errorf("list pods %q in namespace %q: %w", labelSelector, namespace, err)
	}
	pods := make([]Pod, 0, len(list.Items))
	for i := range list.Items {
		pods = append(pods, toPod(&list.Items[i]))
	}
	return pods, nil
}

// Misaddressed reports whether nobody can reach the pod's address: it is neither the node's own, as for pods in the host's network, nor in
// the network that the node was given for its pods.
func (p Pod) Misaddressed(on Node) bool {
	given, err := netip.ParsePrefix(on.PodCIDR)
	address, unread := netip.ParseAddr(p.IP)
	if err != nil || unread != nil || p.Node != on.Name || p.Deleting || p.Phase != string(corev1.PodRunning) {
		return false
	}
	return p.IP != on.IP && !given.Contains(address)
}

// DeletePod deletes a pod, whose controller then makes another; one that is absent is fine.
func (c *Client) DeletePod(ctx context.Context, namespace, name string) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	err := c.set.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod %s in namespace %s: %w", name, namespace, err)
	}
	return nil
}

// ForgetPods removes the records of all pods on a node on which none runs any more. Until then Services send to them; the pod garbage
// collector would take up to a minute.
func (c *Client) ForgetPods(ctx context.Context, node string) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	list, err := c.set.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return fmt.Errorf("list the pods on %s: %w", node, err)
	}
	now := int64(0)
	var errs []error
	for _, p := range list.Items {
		err := c.set.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("delete pod %s/%s, which was on %s: %w", p.Namespace, p.Name, node, err))
		}
	}
	return errors.Join(errs...)
}

func toPod(p *corev1.Pod) Pod {
	cond := condition(p, corev1.PodReady)
	ready := cond != nil && cond.Status == corev1.ConditionTrue
	pod := Pod{
		Namespace: p.Namespace,
		Name:      p.Name,
		Node:      p.Spec.NodeName,
		IP:        p.Status.PodIP,
		Phase:     string(p.Status.Phase),
		Ready:     ready,
		Deleting:  p.DeletionTimestamp != nil,
		UID:       string(p.UID),
		Version:   ImageVersion(p),
		Missing:   missingImages(p),
	}
	if !ready && p.Status.Phase != corev1.PodSucceeded {
		pod.Reason, pod.Exited = podReason(p)
	}
	return pod
}

// ImageVersion is the version that the pod's first image is tagged with, "" if its tag is none. A tag has _ where a version has +.
func ImageVersion(p *corev1.Pod) string {
	if len(p.Spec.Containers) == 0 {
		return ""
	}
	image, _, _ := strings.Cut(p.Spec.Containers[0].Image, "@")
	tag := strings.ReplaceAll(image[strings.LastIndexByte(image, ':')+1:], "_", "+")
	if !semver.IsValid(tag) {
		return ""
	}
	return tag
}

// PodReason is the most telling reason why a pod is not ready: a container's failure, then the pod's own, then what it waits for.
func PodReason(p *corev1.Pod) string {
	why, _ := podReason(p)
	return why
}

func podReason(p *corev1.Pod) (why string, exited bool) {
	containers := slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
	starting := ""
	for _, s := range containers {
		switch why, failed := containerReason(s); {
		case failed:
			return why, s.State.Waiting == nil
		case starting == "":
			starting = why
		}
	}
	if why := because(p.Status.Reason, p.Status.Message); why != "" {
		return why, false
	}
	if cond := condition(p, corev1.PodScheduled); cond != nil && cond.Status != corev1.ConditionTrue {
		return because(cond.Reason, cond.Message), false
	}
	if starting != "" {
		return starting, false
	}
	if cond := condition(p, corev1.PodReady); cond != nil {
		return because(cond.Reason, cond.Message), false
	}
	return "no Ready condition reported", false
}

// containerReason says what a container waits for or died of, and whether that is a failure rather than a step of every start.
func containerReason(s corev1.ContainerStatus) (why string, failed bool) {
	if w := s.State.Waiting; w != nil {
		starting := w.Reason == "ContainerCreating" || w.Reason == "PodInitializing"
		return "container " + s.Name + ": " + because(w.Reason, w.Message), !starting
	}
	if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
		what := fmt.Sprintf("container %s: exit code %d", s.Name, t.ExitCode)
		return because(what, because(t.Reason, t.Message)), true
	}
	return "", false
}

func condition(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i, c := range p.Status.Conditions {
		if c.Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// MissingImage is an image that a container waits for in vain.
type MissingImage struct {
	Image  string
	Always bool      // its imagePullPolicy is Always, so that an image that the node has does not help
	Cause  PullCause `json:",omitempty"`
}

// missingImages are those that the pod's containers cannot get: the pull failed, or is not allowed.
func missingImages(p *corev1.Pod) []MissingImage {
	var missing []MissingImage
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		w := s.State.Waiting
		if w == nil || !slices.Contains([]string{"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull"}, w.Reason) {
			continue
		}
		m := MissingImage{Image: s.Image, Cause: pullCause(w.Message), Always: slices.ContainsFunc(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), func(c corev1.Container) bool {
			return c.Name == s.Name && c.ImagePullPolicy == corev1.PullAlways
		})}
		if !slices.Contains(missing, m) {
			missing = append(missing, m)
		}
	}
	return missing
}

// ImageWait is an image with the pods that cannot get it.
type ImageWait struct {
	MissingImage
	Pods []Pod
}

// ImageWaits groups the pods that cannot get an image by that image.
func ImageWaits(pods []Pod) []ImageWait {
	var all []ImageWait
	for _, p := range pods {
		if p.Deleting {
			continue
		}
		for _, m := range p.Missing {
			i := slices.IndexFunc(all, func(w ImageWait) bool { return w.MissingImage == m })
			if i < 0 {
				i = len(all)
				all = append(all, ImageWait{MissingImage: m})
			}
			all[i].Pods = append(all[i].Pods, p)
		}
	}
	slices.SortStableFunc(all, func(a, b ImageWait) int { return cmp.Compare(a.Image, b.Image) })
	return all
}

// podsNamed is how many pods a sentence names.
const podsNamed = 3

// String says which pods, on which nodes, cannot get which image.
func (w ImageWait) String() string {
	var names, nodes []string
	for _, p := range w.Pods {
		names = append(names, p.Namespace+"/"+p.Name)
		if !slices.Contains(nodes, p.Node) {
			nodes = append(nodes, p.Node)
		}
	}
	slices.Sort(names)
	slices.Sort(nodes)
	kind, more := "pods", ""
	if len(names) == 1 {
		kind = "pod"
	}
	if n := len(names) - podsNamed; n > 0 {
		names, more = names[:podsNamed], fmt.Sprintf(" and %d more", n)
	}
	text := fmt.Sprintf("%s %s%s on %s cannot get the image %s", kind, strings.Join(names, ", "), more, strings.Join(nodes, ", "), w.Image)
	if w.Always {
		text += " (imagePullPolicy: Always)"
	}
	return text
}
