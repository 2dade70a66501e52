package kube

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/drain"

	"k8slab/lab/wait"
)

// DrainBudget bounds a drain: a pod gets its grace period, 30 seconds by
// default, and a PodDisruptionBudget the time in which another pod starts.
const DrainBudget = 2 * time.Minute

// evidenceTime bounds reading, after the budget, what was in the way.
const evidenceTime = 5 * time.Second

// Drain cordons a node and evicts its pods, as `kubectl drain --ignore-daemonsets --delete-emptydir-data` does: PodDisruptionBudgets are
// respected, pods that nothing would make again stop it. A node that is not Ready can confirm no pod's end, so there an accepted eviction
// is enough. No such Node is fine. When its time runs out the error has the pods that are left, and the budgets that keep them. say may be
// called by several at once.
func (c *Client) Drain(ctx context.Context, node string, say func(format string, args ...any)) error {
	k, err := c.set.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("drain %s: %w", node, err)
	}
	limited, cancel := context.WithTimeout(ctx, DrainBudget)
	defer cancel()
	h := &drain.Helper{
		Ctx: limited, Client: c.set, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, GracePeriodSeconds: -1,
		EvictErrorRetryDelay: time.Second, Out: io.Discard, ErrOut: &lines{say: say},
		OnPodDeletionOrEvictionFinished: func(p *corev1.Pod, _ bool, err error) {
			if err == nil {
				say("%s has left %s", named(p), node)
			}
		},
	}
	if !toNode(k).Ready {
		h.SkipWaitForDeleteTimeoutSeconds = 1
		say("%s is not Ready: that its pods end cannot be waited for", node)
	}
	if err := drain.RunCordonOrUncordon(h, k, true); err != nil {
		return fmt.Errorf("cordon %s: %w", node, err)
	}
	list, errs := h.GetPodsForDeletion(node)
	if len(errs) > 0 {
		return fmt.Errorf("drain %s: %w; next: move or delete what is named, then run this again", node, errs[0])
	}
	pods := list.Pods()
	for _, p := range pods {
		if slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil }) {
			say("%s loses its emptyDir volumes", named(&p))
		}
	}
	err = h.DeleteOrEvictPods(pods)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = &wait.TimeoutError{What: "drain " + node, Budget: DrainBudget, Last: c.staying(ctx, h, node)}
	}
	return err
}

// cordonedBy marks a Node that Cordon has cordoned.
const cordonedBy = "k8slab/cordoned"

// Cordon keeps new pods off a node until Uncordon. A node that somebody else has cordoned stays theirs.
func (c *Client) Cordon(ctx context.Context, node string) error {
	k, err := c.Node(ctx, node)
	if err != nil || k == nil || k.Unschedulable {
		return err
	}
	return c.patchNode(ctx, node, `{"metadata":{"annotations":{"`+cordonedBy+`":"`+fieldManager+`"}},"spec":{"unschedulable":true}}`)
}

// Uncordon undoes Cordon, also an earlier one.
func (c *Client) Uncordon(ctx context.Context, node string) error {
	limited, cancel := c.bound(ctx)
	defer cancel()
	k, err := c.set.CoreV1().Nodes().Get(limited, node, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("uncordon %s: %w", node, err)
	}
	if _, ours := k.Annotations[cordonedBy]; !ours {
		return nil
	}
	return c.patchNode(ctx, node, `{"metadata":{"annotations":{"`+cordonedBy+`":null}},"spec":{"unschedulable":null}}`)
}

func (c *Client) patchNode(ctx context.Context, node, patch string) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	_, err := c.set.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("change node %s: %w", node, err)
	}
	return nil
}

// staying says which pods are left on the node, and which PodDisruptionBudgets do not allow their eviction.
func (c *Client) staying(ctx context.Context, h *drain.Helper, node string) error {
	ctx, cancel := context.WithTimeout(ctx, evidenceTime)
	defer cancel()
	again := *h
	again.Ctx = ctx
	list, errs := again.GetPodsForDeletion(node)
	if len(errs) > 0 {
		return errs[0]
	}
	var left []string
	for _, p := range list.Pods() {
		text := named(&p) + " stays"
		if keeper := c.keeper(ctx, &p); keeper != "" {
			text += ", because PodDisruptionBudget " + keeper + " allows no disruption"
		} else if p.DeletionTimestamp != nil {
			text += ", though it is being deleted"
		}
		left = append(left, text)
	}
	return fmt.Errorf("%s; next: scale up or delete what they are part of, or the budget, then run this again", strings.Join(left, "; "))
}

// keeper is the PodDisruptionBudget that does not allow the pod's eviction, "" for none.
func (c *Client) keeper(ctx context.Context, p *corev1.Pod) string {
	budgets, err := c.set.PolicyV1().PodDisruptionBudgets(p.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return ""
	}
	for _, b := range budgets.Items {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && selector.Matches(labels.Set(p.Labels)) && b.Status.DisruptionsAllowed == 0 {
			return b.Namespace + "/" + b.Name
		}
	}
	return ""
}

func named(p *corev1.Pod) string { return "pod " + p.Namespace + "/" + p.Name }

// lines passes on each line that is written, but only once: a refused eviction is retried every second.
type lines struct {
	say  func(format string, args ...any)
	told sync.Map
}

func (l *lines) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		if _, told := l.told.LoadOrStore(line, nil); !told {
			l.say("%s", strings.TrimSpace(line))
		}
	}
	return len(b), nil
}
