package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"k8slab/lab/wait"
)

func drainedNode(ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w3"}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
	}}
}

// podOn is a pod on w3 that a controller made, "" for none.
func podOn(name, controller string, volumes ...corev1.Volume) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: "w3", Volumes: volumes},
	}
	if controller != "" {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: controller, Name: name, Controller: &yes}}
	}
	return p
}

// evicting serves evictions: keep says why a pod stays. A node that is not Ready leaves its pods there.
func evicting(set *fake.Clientset, keep func(pod string) error, leave bool) {
	set.Resources = []*metav1.APIResourceList{{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "pods/eviction", Kind: "Eviction", Group: "policy", Version: "v1"},
	}}}
	set.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() != "eviction" {
			return false, nil, nil
		}
		e := a.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction)
		if err := keep(e.Name); err != nil {
			return true, nil, err
		}
		if leave {
			p, _ := set.Tracker().Get(corev1.SchemeGroupVersion.WithResource("pods"), e.Namespace, e.Name)
			gone := p.(*corev1.Pod).DeepCopy()
			now := metav1.Now()
			gone.DeletionTimestamp = &now
			return true, nil, set.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), gone, e.Namespace)
		}
		return true, nil, set.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), e.Namespace, e.Name)
	})
}

func freely(string) error { return nil }

func drained(t *testing.T, set *fake.Clientset) (said []string, err error) {
	t.Helper()
	var mu sync.Mutex
	err = Of(set).Drain(t.Context(), "w3", func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, fmt.Sprintf(format, args...))
	})
	return said, err
}

func podsLeft(t *testing.T, set *fake.Clientset) string {
	t.Helper()
	list, err := set.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range list.Items {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scratch := corev1.Volume{Name: "x", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
		agent := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "agent"}}
		set := fake.NewClientset(drainedNode(corev1.ConditionTrue), podOn("web", "ReplicaSet", scratch), agent, podOn("agent", "DaemonSet"))
		evicting(set, freely, false)
		said, err := drained(t, set)
		if err != nil {
			t.Fatal(err)
		}
		n, _ := set.CoreV1().Nodes().Get(t.Context(), "w3", metav1.GetOptions{})
		if got := podsLeft(t, set); got != "agent" || !n.Spec.Unschedulable {
			t.Errorf("left: %s; cordoned: %v; want the DaemonSet's pod alone on a cordoned node", got, n.Spec.Unschedulable)
		}
		if want := []string{"pod shop/web loses its emptyDir volumes", "pod shop/web has left w3"}; !slices.Equal(said, want) {
			t.Errorf("said %q, want %q", said, want)
		}
	})
}

func TestDrainWithoutNode(t *testing.T) {
	if _, err := drained(t, fake.NewClientset()); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestDrainNamesTheBudgetThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "keep-web"},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		}
		set := fake.NewClientset(drainedNode(corev1.ConditionTrue), podOn("web", "ReplicaSet"), podOn("free", "ReplicaSet"), budget)
		evicting(set, func(pod string) error {
			if pod == "web" {
				return apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
			}
			return nil
		}, false)
		said, err := drained(t, set)
		if len(said) != 2 {
			t.Errorf("said %q, want one refusal and one departure", said)
		}
		timeout, ok := err.(*wait.TimeoutError)
		if !ok || timeout.Budget != DrainBudget {
			t.Fatalf("got %v, want that the budget of %s ran out", err, DrainBudget)
		}
		const want = "pod shop/web stays, because PodDisruptionBudget shop/keep-web allows no disruption; next: "
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, which lacks %q", err, want)
		}
		if got := podsLeft(t, set); got != "web" {
			t.Errorf("left: %s, want the pod that the budget keeps", got)
		}
	})
}

func TestDrainRefusesPodsThatNothingMakesAgain(t *testing.T) {
	set := fake.NewClientset(drainedNode(corev1.ConditionTrue), podOn("alone", ""))
	evicting(set, freely, false)
	if _, err := drained(t, set); err == nil || !strings.Contains(err.Error(), "shop/alone") {
		t.Errorf("got %v, want the pod's name", err)
	}
	if got := podsLeft(t, set); got != "alone" {
		t.Errorf("left: %q", got)
	}
}

func TestDrainOfADeadNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := fake.NewClientset(drainedNode(corev1.ConditionUnknown), podOn("web", "ReplicaSet"))
		evicting(set, freely, true)
		said, err := drained(t, set)
		if err != nil || len(said) == 0 || !strings.Contains(said[0], "not Ready") {
			t.Errorf("got %v, said %q; want no wait for the pod's end", err, said)
		}
	})
}

// What was cordoned by others stays cordoned.
func TestCordon(t *testing.T) {
	for _, before := range []bool{false, true} {
		n := drainedNode(corev1.ConditionTrue)
		n.Spec.Unschedulable = before
		set := fake.NewClientset(n)
		c := Of(set)
		is := func(when string, want bool) {
			t.Helper()
			k, err := c.Node(t.Context(), "w3")
			if err != nil || k.Unschedulable != want {
				t.Errorf("%s: %+v, %v, want unschedulable %v", when, k, err, want)
			}
		}
		for range 2 {
			if err := c.Cordon(t.Context(), "w3"); err != nil {
				t.Fatal(err)
			}
			is("cordoned", true)
		}
		for range 2 {
			if err := c.Uncordon(t.Context(), "w3"); err != nil {
				t.Fatal(err)
			}
			is("uncordoned", before)
		}
		if err := c.Cordon(t.Context(), "w9"); err != nil {
			t.Errorf("no such Node: %v", err)
		}
	}
}
