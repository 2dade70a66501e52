package validate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

func namespace(name, owner string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{ownerLabel: owner}}}
}

func TestLeftovers(t *testing.T) {
	w, c := newWorld(t, namespace("k8slab-validate-a", "onboard-w3"), namespace("k8slab-validate-b", "labctl"), namespace("prod", "onboard-w3"),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "k8slab-validate-c"}},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, ClaimRef: &corev1.ObjectReference{Namespace: "k8slab-validate-a"}}})
	left, err := c.Leftovers(t.Context())
	if err != nil || !slices.Equal(left, []Leftover{{Namespace: "k8slab-validate-a", Owner: "onboard-w3"}, {Namespace: "k8slab-validate-b", Owner: "labctl"}}) {
		t.Fatal(left, err)
	}
	if err := c.RemoveLeftovers(t.Context(), "onboard-w3"); err != nil {
		t.Fatal(err)
	}
	namespaces, err := w.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(namespaces.Items) != 3 { // labctl's, one without a label, and one that only has it
		t.Error(namespaces, err)
	}
	if volumes, err := w.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{}); err != nil || len(volumes.Items) > 0 {
		t.Error("a volume that its class would have kept is there", volumes, err)
	}
}

func TestNamespaceThatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := namespace("k8slab-validate-a", "labctl")
		stuck.Status.Conditions = []corev1.NamespaceCondition{{Status: corev1.ConditionTrue, Message: "Discovery failed for some groups: metrics.k8s.io/v1beta1"}}
		w, c := newWorld(t, stuck)
		w.PrependReactor("delete", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
		begin := time.Now()
		err := c.RemoveLeftovers(t.Context(), "labctl")
		if err == nil || !strings.Contains(err.Error(), "k8slab-validate-a is gone: the 1m0s budget ran out; Discovery failed for some groups") {
			t.Error(err)
		}
		if took := time.Since(begin); took != removeBudget {
			t.Error(took)
		}
	})
}

// The removal is no reason to say that a network fails.
func TestTrialWhoseNamespaceStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := newWorld(t, node("w1"), node("w2"))
		w.PrependReactor("delete", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("admission webhook denied the request")
		})
		findings := Run(t.Context(), triedOn(c, ""))
		judgeFinding(t, findings[0], Warned, "webhook denied", "kubectl delete namespace k8slab-validate-")
		judgeFinding(t, findings[1], Passed)
	})
}

func TestNamespaceHasOwner(t *testing.T) {
	for owner, want := range map[string]string{"": "labctl", "onboard-w3": "onboard-w3"} {
		_, c := newWorld(t)
		c.Owner = owner
		used, removed := c.inNamespace(t.Context(), func(string) error {
			left, err := c.Leftovers(t.Context())
			if err == nil && (len(left) != 1 || left[0].Owner != want) {
				t.Errorf("%v, want %s", left, want)
			}
			return err
		})
		if used != nil || removed != nil {
			t.Error(used, removed)
		}
	}
}

// until begins again when the server ends the watch, and looks on when there is an event.
func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newWorld(t)
		accounts := w.CoreV1().ServiceAccounts("n")
		go func() {
			time.Sleep(3 * time.Second)
			_ = w.Tracker().Add(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "default"}})
		}()
		begin, looks := time.Now(), 0
		err := until(t.Context(), accounts.Watch, metav1.ListOptions{}, func(ctx context.Context) (bool, error) {
			looks++
			return found(accounts.Get(ctx, "default", metav1.GetOptions{}))
		})
		if took := time.Since(begin); err != nil || took != 3*time.Second || looks != 2 {
			t.Error(err, took, looks)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("the time is over"))
		defer cancel()
		never := func(context.Context) (bool, error) { return false, nil }
		if err := until(ctx, accounts.Watch, metav1.ListOptions{}, never); err == nil || err.Error() != "the time is over" {
			t.Error(err)
		}
	})
}
