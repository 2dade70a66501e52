package kube

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMark(t *testing.T) {
	labels := func(text ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(text); i += 2 {
			m[text[i]] = text[i+1]
		}
		return m
	}
	own := []Taint{{"gpu", "a", "NoSchedule"}}
	tests := []struct {
		name     string
		was, now Marks
		want     string // labels and taints of a Node with the labels rack and zone, and the taints gpu=a and other
		changed  bool
	}{
		{"nothing", Marks{}, Marks{}, "map[rack:a zone:z] [gpu=a:NoSchedule other=:NoExecute]", false},
		{"the same", Marks{labels("rack", "a"), own}, Marks{labels("rack", "a"), own}, "map[rack:a zone:z] [gpu=a:NoSchedule other=:NoExecute]", false},
		{"others", Marks{labels("rack", "a"), own}, Marks{labels("disk", "ssd"), []Taint{{"slow", "", "NoExecute"}}},
			"map[disk:ssd zone:z] [other=:NoExecute slow=:NoExecute]", true},
		{"other values", Marks{labels("rack", "a"), own}, Marks{labels("rack", "b"), []Taint{{"gpu", "b", "NoSchedule"}}},
			"map[rack:b zone:z] [other=:NoExecute gpu=b:NoSchedule]", true},
		{"none, where a person has set another value", Marks{Labels: labels("rack", "b")}, Marks{}, "map[rack:a zone:z] [gpu=a:NoSchedule other=:NoExecute]", false},
		{"none", Marks{labels("rack", "a", "gone", "x"), own}, Marks{}, "map[zone:z] [other=:NoExecute]", true},
	}
	for _, tt := range tests {
		k := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels("rack", "a", "zone", "z")}}
		k.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "a", Effect: "NoSchedule"}, {Key: "other", Effect: "NoExecute"}}
		changed := remark(k, tt.now, Marks{Labels: labels("never", "set")}, tt.was)
		var taints []string
		for _, t := range k.Spec.Taints {
			taints = append(taints, t.Key+"="+t.Value+":"+string(t.Effect))
		}
		if got := fmt.Sprint(k.Labels, " ", taints); got != tt.want || changed != tt.changed {
			t.Errorf("%s: %s, %v; want %s, %v", tt.name, got, changed, tt.want, tt.changed)
		}
	}
}
