package repair

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"k8slab/lab/cluster"
	"k8slab/lab/kube"
	"k8slab/lab/labtest"
	"k8slab/lab/session"
	"k8slab/lab/symptom"
)

func calicoPod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, Labels: map[string]string{"k8s-app": "calico-node"}},
		Spec:       corev1.PodSpec{NodeName: node},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

// Where labnode has no configuration to put back, the network add-on's pod is deleted, and the next one writes it: once, on that node, and not
// on one on which something else is to be done first.
func TestConfigured(t *testing.T) {
	left := Repaired{Node: "w1", Symptom: string(symptom.CNINotInitialized), Left: "restart the network add-on's pod of this node"}
	for _, tt := range []struct {
		name   string
		dryRun bool
		found  []Repaired
		says   string // of what is found in the end
		gone   []string
	}{
		{"left to the add-on", false, []Repaired{left}, "deleted kube-system/calico-1; the new pod writes it", []string{"calico-1"}},
		{"a dry run", true, []Repaired{left}, "", nil},
		{"something was done on it", false, []Repaired{left, {Node: "w1", Symptom: "swap-enabled", Did: "turned it off"}}, "", nil},
	} {
		set := fake.NewClientset(calicoPod("calico-1", "w1"), calicoPod("calico-2", "w2"))
		var gone []string
		set.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			gone = append(gone, a.(clienttesting.DeleteAction).GetName())
			return false, nil, set.Tracker().Add(calicoPod("calico-new", "w1"))
		})
		s := labtest.Session(t, labtest.Small)
		r := &repairRun{
			Run: &cluster.Run{Session: s, Admin: &session.Admin{Kube: kube.Of(set)}}, step: s.Events.Start("", "repair", 0),
			before: []symptom.Finding{{Symptom: symptom.CNINotInitialized, Node: "w1", Level: symptom.Fail}}, found: slices.Clone(tt.found),
		}
		r.DryRun = tt.dryRun
		if err := r.configured(t.Context()); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if !slices.Equal(gone, tt.gone) {
			t.Errorf("%s: deleted %q", tt.name, gone)
		}
		if last := r.found[len(r.found)-1]; last.Did != tt.says && tt.says != "" || tt.dryRun && last.Would == "" {
			t.Errorf("%s: found %+v", tt.name, r.found)
		}
		if tt.says != "" && len(r.found) != 1 {
			t.Errorf("%s: what the node left is still there: %+v", tt.name, r.found)
		}
	}
}
