package validate

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// notServed is what an API server says of a resource that it does not have.
func notServed(r schema.GroupVersionResource) error {
	return apierrors.NewGenericServerResponse(404, "list", r.GroupResource(), "", "the server could not find the requested resource", 0, true)
}

// look makes the check whose name has the text.
func look(t *testing.T, checks []Check, name string) Finding {
	t.Helper()
	for _, c := range checks {
		if strings.Contains(c.Name, name) {
			return Run(t.Context(), []Check{c})[0]
		}
	}
	t.Fatalf("no check %q", name)
	return Finding{}
}

// checkFinding wants a status, and all words in the detail. What is no pass and no absence has a next step.
func checkFinding(t *testing.T, f Finding, status Status, words ...string) {
	t.Helper()
	if f.Status != status {
		t.Errorf("%s: %s (%s), wanted %s", f.Check, f.Status, f.Detail, status)
	}
	for _, w := range words {
		if !strings.Contains(f.Detail, w) {
			t.Errorf("%s: detail %q has no %q", f.Check, f.Detail, w)
		}
	}
	if (f.Status == Warned || f.Status == Failed) && f.Next == "" {
		t.Errorf("%s: no next step", f.Check)
	}
	if strings.Contains(f.Detail+f.Next, "%!") {
		t.Errorf("%s: bad format: %q %q", f.Check, f.Detail, f.Next)
	}
}

// member is a Node that is Ready.
func member(name, ip string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// runningPod is a ready pod on a node, with an owner of a kind ("" for none).
func runningPod(namespace, name, node, owner string) *corev1.Pod {
	yes := true
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": strings.Split(name, "-")[0]}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	if owner != "" {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: owner, Name: name, Controller: &yes}}
	}
	return p
}

func notReadyPod(p *corev1.Pod) *corev1.Pod {
	p.Status.Conditions[0].Status = corev1.ConditionFalse
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "c", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}},
	}}
	return p
}
