package kube

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestReadyzPart(t *testing.T) {
	f := newFakeAPI(t)
	f.on("GET /readyz/etcd", http.StatusInternalServerError, "[-]etcd failed: reason withheld\n")
	c, _ := f.client()
	failing, err := Readyz(t.Context(), c.set, "/etcd")
	if err != nil || strings.Join(failing, ";") != "etcd failed: reason withheld" {
		t.Errorf("failing %q, error %v", failing, err)
	}
}

func TestNodeReady(t *testing.T) {
	for want, conditions := range map[string][]corev1.NodeCondition{
		"": {{Type: corev1.NodeDiskPressure}, {Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		"w1 is not Ready: KubeletNotReady: no network": {{Type: corev1.NodeReady, Reason: "KubeletNotReady", Message: "no network"}},
		"w1 is not Ready: NodeStatusUnknown":           {{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown"}},
		"w1 is not Ready: no Ready condition reported": nil,
	} {
		err := NodeReady(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1"}, Status: corev1.NodeStatus{Conditions: conditions}})
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestPodReady(t *testing.T) {
	now := metav1.Now()
	ready := []corev1.PodCondition{{Type: corev1.PodScheduled}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for name, tt := range map[string]struct {
		pod  corev1.Pod
		want bool
	}{
		"ready":    {corev1.Pod{Status: corev1.PodStatus{Conditions: ready}}, true},
		"deleting": {corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}, Status: corev1.PodStatus{Conditions: ready}}, false},
		"starting": {corev1.Pod{Status: corev1.PodStatus{Conditions: ready[:1]}}, false},
		"failing":  {corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}}}, false},
	} {
		if got := PodReady(&tt.pod); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestWorkloadReady(t *testing.T) {
	for _, tt := range []struct {
		ready, want int
		err         string
	}{
		{2, 2, ""}, {1, 2, "coredns: 1 of 2 pods ready"}, {0, 0, "coredns: 0 of 0 pods ready"},
	} {
		f := newFakeAPI(t)
		f.on("GET /apis/apps/v1/namespaces/kube-system/deployments/coredns", 200, fields{"kind": "Deployment", "apiVersion": "apps/v1",
			"spec": fields{"replicas": tt.want}, "status": fields{"readyReplicas": tt.ready, "updatedReplicas": tt.ready}})
		f.on("GET /apis/apps/v1/namespaces/kube-system/daemonsets/coredns", 200, fields{"kind": "DaemonSet", "apiVersion": "apps/v1",
			"status": fields{"desiredNumberScheduled": tt.want, "numberReady": tt.ready, "updatedNumberScheduled": tt.ready}})
		c, _ := f.client()
		for _, err := range []error{c.DeploymentReady(t.Context(), "kube-system", "coredns"), c.DaemonSetReady(t.Context(), "kube-system", "coredns")} {
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		}
	}
}

func TestProbeAnswer(t *testing.T) {
	if got, err := ProbeAnswer(strings.NewReader(`["10.0.0.1:8080: refused"]`)); err != nil || len(got) != 1 {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := ProbeAnswer(strings.NewReader("404 page not found")); err == nil {
		t.Errorf("%q of another program's answer", got)
	}
}
