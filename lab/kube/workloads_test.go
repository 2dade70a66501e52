package kube

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestDeployment(t *testing.T) {
	tests := []struct {
		name        string
		spec        fields
		status      fields
		ready, want int
		err         string
	}{
		{"ready", fields{"replicas": 2}, fields{"observedGeneration": 3, "readyReplicas": 2, "updatedReplicas": 2}, 2, 2, ""},
		{"default replicas", fields{}, fields{"observedGeneration": 3}, 0, 1, ""},
		{"old pods are ready", fields{"replicas": 2}, fields{"observedGeneration": 3, "readyReplicas": 3, "updatedReplicas": 1}, 1, 2, ""},
		{"status is behind", fields{"replicas": 2}, fields{"observedGeneration": 2, "readyReplicas": 2, "updatedReplicas": 2}, 0, 0, "generation 3 not observed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFakeAPI(t)
			f.on("GET /apis/apps/v1/namespaces/kube-system/deployments/coredns", 200,
				fields{"kind": "Deployment", "apiVersion": "apps/v1", "metadata": fields{"generation": 3}, "spec": tt.spec, "status": tt.status})
			c, _ := f.client()
			ready, want, err := c.Deployment(t.Context(), "kube-system", "coredns")
			checkCounts(t, ready, want, err, tt.ready, tt.want, tt.err)
		})
	}
}

func TestDaemonSet(t *testing.T) {
	tests := []struct {
		name        string
		strategy    string
		status      fields
		ready, want int
		err         string
	}{
		{"ready", "RollingUpdate", fields{"observedGeneration": 3, "numberReady": 3, "updatedNumberScheduled": 3, "desiredNumberScheduled": 3}, 3, 3, ""},
		{"old pods are ready", "RollingUpdate", fields{"observedGeneration": 3, "numberReady": 3, "updatedNumberScheduled": 2, "desiredNumberScheduled": 3}, 2, 3, ""},
		{"old pods stay", "OnDelete", fields{"observedGeneration": 3, "numberReady": 3, "updatedNumberScheduled": 0, "desiredNumberScheduled": 3}, 3, 3, ""},
		{"new", "RollingUpdate", fields{}, 0, 0, "generation 3 not observed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFakeAPI(t)
			f.on("GET /apis/apps/v1/namespaces/kube-system/daemonsets/net", 200, fields{"kind": "DaemonSet", "apiVersion": "apps/v1",
				"metadata": fields{"generation": 3}, "spec": fields{"updateStrategy": fields{"type": tt.strategy}}, "status": tt.status})
			c, _ := f.client()
			ready, want, err := c.DaemonSet(t.Context(), "kube-system", "net")
			checkCounts(t, ready, want, err, tt.ready, tt.want, tt.err)
		})
	}
}

func checkCounts(t *testing.T, ready, want int, err error, wantReady, wantWant int, wantErr string) {
	t.Helper()
	if ready != wantReady || want != wantWant {
		t.Errorf("%d of %d ready, want %d of %d", ready, want, wantReady, wantWant)
	}
	if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
		t.Errorf("error %v, want %q", err, wantErr)
	}
}

func TestService(t *testing.T) {
	f := newFakeAPI(t)
	f.on("GET /api/v1/namespaces/default/services/kubernetes", 200,
		fields{"kind": "Service", "apiVersion": "v1", "spec": fields{"clusterIP": "10.96.0.1"}})
	f.on("GET /api/v1/namespaces/default/services/none", 404, notFound())
	c, _ := f.client()
	if ip, err := c.Service(t.Context(), "default", "kubernetes"); ip != "10.96.0.1" || err != nil {
		t.Errorf("address %q, error %v", ip, err)
	}
	if _, err := c.Service(t.Context(), "default", "none"); err == nil || !strings.Contains(err.Error(), "service default/none") {
		t.Errorf("error %v", err)
	}
}

func TestPods(t *testing.T) {
	f := newFakeAPI(t)
	f.on("GET /api/v1/namespaces/kube-system/pods", 200, fields{"kind": "PodList", "apiVersion": "v1", "items": []fields{
		{"metadata": fields{"namespace": "kube-system", "name": "a", "uid": "u", "deletionTimestamp": "2026-01-02T03:04:05Z"},
			"spec":   fields{"nodeName": "cp1"},
			"status": fields{"phase": "Running", "podIP": "10.244.0.2", "conditions": []fields{{"type": "Ready", "status": "True"}}}},
	}})
	c, _ := f.client()
	pods, err := c.Pods(t.Context(), "kube-system", "k8s-app=x")
	if err != nil {
		t.Fatal(err)
	}
	want := Pod{Namespace: "kube-system", Name: "a", Node: "cp1", IP: "10.244.0.2", Phase: "Running", Ready: true, Deleting: true, UID: "u"}
	if len(pods) != 1 || !reflect.DeepEqual(pods[0], want) {
		t.Errorf("pods %+v, want %+v", pods, want)
	}
}

func TestDeletePod(t *testing.T) {
	f := newFakeAPI(t)
	f.on("DELETE /api/v1/namespaces/n/pods/here", 200, fields{"kind": "Pod", "apiVersion": "v1"})
	f.on("DELETE /api/v1/namespaces/n/pods/gone", 404, notFound())
	f.on("DELETE /api/v1/namespaces/n/pods/kept", 403, fields{"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403})
	c, rec := f.client()
	for name, ok := range map[string]bool{"here": true, "gone": true, "kept": false} {
		if err := c.DeletePod(t.Context(), "n", name); (err == nil) != ok {
			t.Errorf("delete %s: error %v", name, err)
		}
	}
	if len(rec.what) != 3 {
		t.Errorf("reported changes %q", rec.what)
	}
}

func TestForgetPods(t *testing.T) {
	f := newFakeAPI(t)
	pod := func(name string) fields {
		return fields{"metadata": fields{"namespace": "n", "name": name, "uid": "u-" + name}}
	}
	f.handle("GET /api/v1/pods", func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query().Get("fieldSelector"); got != "spec.nodeName=w1" {
			t.Errorf("listed the pods of %q", got)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(fields{"kind": "PodList", "apiVersion": "v1", "items": []fields{pod("here"), pod("gone"), pod("new"), pod("kept")}})
	})
	for name, code := range map[string]int{"here": 200, "gone": 404, "new": 409, "kept": 403} {
		f.on("DELETE /api/v1/namespaces/n/pods/"+name, code, fields{"kind": "Status", "apiVersion": "v1", "status": "Failure",
			"reason": map[int]string{404: "NotFound", 409: "Conflict", 403: "Forbidden"}[code], "code": code})
	}
	c, _ := f.client()
	err := c.ForgetPods(t.Context(), "w1")
	if err == nil || !strings.Contains(err.Error(), "delete pod n/kept, which was on w1") || strings.Contains(err.Error(), "n/gone") || strings.Contains(err.Error(), "n/new") {
		t.Errorf("got %v, want the one refusal", err)
	}
	body := bytes.TrimPrefix(f.body("DELETE /api/v1/namespaces/n/pods/here"), []byte("k8s\x00"))
	var sent runtime.Unknown
	var o metav1.DeleteOptions
	if err := errors.Join(sent.Unmarshal(body), o.Unmarshal(sent.Raw)); err != nil {
		t.Fatal(err)
	}
	if o.GracePeriodSeconds == nil || *o.GracePeriodSeconds != 0 || o.Preconditions == nil || string(*o.Preconditions.UID) != "u-here" {
		t.Errorf("asked for %v, want that pod's end at once", o)
	}
}

func TestPodReason(t *testing.T) {
	waiting := func(name, reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
	}
	exited := func(name string, code int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error"}}}
	}
	unready := corev1.PodCondition{Type: corev1.PodReady, Status: "False", Reason: "ContainersNotReady", Message: "x"}
	unscheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: "False", Reason: "Unschedulable", Message: "0/3 nodes"}
	tests := []struct {
		name   string
		status corev1.PodStatus
		want   string
	}{
		{"nothing known", corev1.PodStatus{}, "no Ready condition reported"},
		{"completed", corev1.PodStatus{Phase: corev1.PodSucceeded, Conditions: []corev1.PodCondition{unready}}, ""},
		{"condition only", corev1.PodStatus{Conditions: []corev1.PodCondition{unready}}, "ContainersNotReady: x"},
		{"unschedulable", corev1.PodStatus{Conditions: []corev1.PodCondition{unready, unscheduled}}, "Unschedulable: 0/3 nodes"},
		{"starting", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("a", "ContainerCreating", "")},
			Conditions: []corev1.PodCondition{unready}}, "container a: ContainerCreating"},
		{"failure before start", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			waiting("a", "ContainerCreating", ""), waiting("b", "ImagePullBackOff", "no such image")}}, "container b: ImagePullBackOff: no such image"},
		{"init container", corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{exited("done", 0), exited("i", 2)},
			ContainerStatuses: []corev1.ContainerStatus{waiting("a", "PodInitializing", "")}}, "container i: exit code 2: Error"},
		{"evicted", corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "disk"}, "Evicted: disk"},
	}
	for _, tt := range tests {
		if got := toPod(&corev1.Pod{Status: tt.status}); got.Reason != tt.want || got.Ready || got.Exited != (tt.name == "init container") {
			t.Errorf("%s: reason %q, exited %v, ready %v, want %q", tt.name, got.Reason, got.Exited, got.Ready, tt.want)
		}
	}
}
