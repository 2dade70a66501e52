package validate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8slab/lab/kube"
)

const (
	// labnode is where the program is in its image.
	labnode = "/labnode"
	// anyUser is the user of test pods, who owns nothing.
	anyUser = 65532
	// imageNext is the next step when no test pod can run.
	imageNext = "give an image of labnode that every Node has or can pull: --image IMAGE"
)

// hopeless are the reasons of a container that no waiting cures, or not soon.
var hopeless = []string{"ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError"}

// patient is a time for test pods.
func (c *Cluster) patient(d time.Duration) time.Duration {
	return d * time.Duration(max(1, c.Patience))
}

// testPod is a pod on one Node that runs labnode probe with the arguments. It tolerates every taint, has no rights, and ends when it is told to.
func (c *Cluster) testPod(name, node string, args ...string) *corev1.Pod {
	no, yes, user, grace := false, true, int64(anyUser), int64(1)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "probe"}},
		Spec: corev1.PodSpec{
			NodeName:                      node,
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: &grace,
			AutomountServiceAccountToken:  &no,
			EnableServiceLinks:            &no,
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user, FSGroup: &user,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "probe", Image: c.Image, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{labnode, "probe"}, Args: args,
				// What the program says last is in the pod's status.
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}

// onlyOn leaves the scheduler one Node to choose.
func onlyOn(node string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}},
	}}
}

// startPods makes the pods at once and waits until each holds, has failed for good, or the budget has run out. It returns those that hold, by
// name, and for each other one why it does not.
func (c *Cluster) startPods(ctx context.Context, namespace string, budget time.Duration, pods []*corev1.Pod, holds func(*corev1.Pod) bool,
) (good map[string]*corev1.Pod, bad map[string]string, err error) {
	for _, p := range pods {
		if _, err := c.Kube.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, nil, fmt.Errorf("create test pod %s: %w", p.Name, err)
		}
	}
	limited, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	seen := map[string]*corev1.Pod{}
	err = until(limited, c.Kube.CoreV1().Pods(namespace).Watch, metav1.ListOptions{}, func(ctx context.Context) (bool, error) {
		list, err := c.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			seen[list.Items[i].Name] = &list.Items[i]
		}
		waiting := func(p *corev1.Pod) bool { return seen[p.Name] == nil || !holds(seen[p.Name]) && !lost(seen[p.Name]) }
		return !slices.ContainsFunc(pods, waiting), nil
	})
	switch {
	case ctx.Err() != nil:
		return nil, nil, fmt.Errorf("%w%s", context.Cause(ctx), c.unready(ctx, pods, seen, holds))
	case err != nil && limited.Err() == nil:
		return nil, nil, fmt.Errorf("wait for test pods in namespace %s: %w", namespace, err)
	}
	good, bad = map[string]*corev1.Pod{}, map[string]string{}
	for _, p := range pods {
		switch now := seen[p.Name]; {
		case now == nil:
			bad[p.Name] = "it is gone"
		case holds(now):
			good[p.Name] = now
		case lost(now):
			bad[p.Name] = c.why(ctx, now)
		default:
			bad[p.Name] = fmt.Sprintf("after %s: %s", budget, c.why(ctx, now))
		}
	}
	return good, bad, nil
}

// unready says what the first of the pods that do not hold waits for, as the end of a sentence about a wait that was cut short.
func (c *Cluster) unready(ctx context.Context, pods []*corev1.Pod, seen map[string]*corev1.Pod, holds func(*corev1.Pod) bool) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.patient(askTimeout))
	defer cancel()
	for _, p := range pods {
		if now := seen[p.Name]; now != nil && !holds(now) {
			return fmt.Sprintf("; last seen: pod %s: %s", p.Name, c.why(ctx, now))
		}
	}
	return ""
}

// lost reports whether waiting for the pod is in vain.
func lost(p *corev1.Pod) bool {
	for _, s := range p.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil && slices.Contains(hopeless, w.Reason) {
			return true
		}
	}
	return p.Status.Phase == corev1.PodFailed
}

// why says what keeps a pod from being ready: its program's last words, what its status says, and the last warning about it.
func (c *Cluster) why(ctx context.Context, p *corev1.Pod) string {
	for _, s := range p.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil && t.ExitCode != 0 && t.Message != "" {
			return strings.TrimSpace(t.Message)
		}
	}
	return kube.PodReason(p) + c.lastWarning(ctx, p.Namespace, p.Name)
}

// lastWarning is the last warning event about an object, as the end of a sentence. Without events there is only less evidence.
func (c *Cluster) lastWarning(ctx context.Context, namespace, name string) string {
	events, err := c.Kube.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=Warning,involvedObject.name=" + name})
	if err != nil {
		return ""
	}
	var last *corev1.Event
	for i, e := range events.Items {
		if e.InvolvedObject.Name == name && e.Type == corev1.EventTypeWarning && (last == nil || !kube.EventTime(e).Before(kube.EventTime(*last))) {
			last = &events.Items[i]
		}
	}
	if last == nil {
		return ""
	}
	return fmt.Sprintf("; event %s: %s", last.Reason, strings.TrimSpace(last.Message))
}
