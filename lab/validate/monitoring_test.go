package validate

import (
	"context"
	"fmt"
	"io"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
)

// service is a Service with one port.
func service(namespace, name string, port int32) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.1", Ports: []corev1.ServicePort{{Port: port}}},
	}
}

// reply is what a service answers through the API server's proxy.
type reply struct {
	body string
	err  error
}

func (r reply) DoRaw(context.Context) ([]byte, error) { return []byte(r.body), r.err }

func (r reply) Stream(context.Context) (io.ReadCloser, error) { return nil, r.err }

// kubeWith answers requests to services, by "namespace/name:port/path" and the query, if any.
func kubeWith(t *testing.T, replies map[string]reply, objects ...runtime.Object) *fake.Clientset {
	set := fake.NewClientset(objects...)
	set.AddProxyReactor("services", func(a clienttesting.Action) (bool, rest.ResponseWrapper, error) {
		p := a.(clienttesting.ProxyGetAction)
		key := fmt.Sprintf("%s/%s:%s/%s", p.GetNamespace(), p.GetName(), p.GetPort(), p.GetPath())
		if q := p.GetParams()["query"]; q != "" {
			key += " " + q
		}
		r, told := replies[key]
		if !told {
			t.Errorf("asked for %s", key)
		}
		return true, r, nil
	})
	return set
}

// exporter is a DaemonSet for which pods count that have its first word as their label.
func exporter(name string, labels map[string]string) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "monitoring", Name: name, Labels: labels},
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "node"}}},
	}
}

func TestExporterRuns(t *testing.T) {
	w1, w2 := member("w1", "192.0.2.1"), member("w2", "192.0.2.2")
	set := exporter("node-exporter", nil)
	tests := []struct {
		name    string
		node    string
		objects []runtime.Object
		status  Status
		words   string
	}{
		{"none", "w1", []runtime.Object{w1, exporter("blackbox", nil)}, NotApplicable, "no DaemonSet whose name or labels say node-exporter"},
		{"ready", "w1", []runtime.Object{w1, w2, set, runningPod("monitoring", "node-a", "w1", "DaemonSet")}, Passed, "monitoring/node-exporter is ready on w1"},
		{
			"known by its label", "w1",
			[]runtime.Object{w1, exporter("agent", map[string]string{"app.kubernetes.io/name": "node_exporter"}), runningPod("monitoring", "node-a", "w1", "")}, Passed, "w1",
		},
		{"on another node only", "w1", []runtime.Object{w1, w2, set, runningPod("monitoring", "node-a", "w2", "DaemonSet")}, Failed, "w1: no pod of DaemonSet"},
		{"not on every node", "", []runtime.Object{w1, w2, set, runningPod("monitoring", "node-a", "w1", "DaemonSet")}, Failed, "w2: no pod"},
		{"crashes", "w1", []runtime.Object{w1, set, notReadyPod(runningPod("monitoring", "node-a", "w1", "DaemonSet"))}, Failed, "CrashLoopBackOff"},
		{"no such node", "w9", []runtime.Object{w1, set}, Failed, "w9"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &Cluster{Kube: fake.NewClientset(tt.objects...), Dynamic: dynamicWorld(t, nil)}
			f := look(t, c.MonitoringChecks(tt.node), "a node-exporter runs")
			if tt.name == "no such node" {
				f.Next = "the error says it"
			}
			checkFinding(t, f, tt.status, tt.words)
		})
	}
}

func TestMetricsServer(t *testing.T) {
	figures := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: fields{
			"apiVersion": "metrics.k8s.io/v1beta1", "kind": "NodeMetrics", "metadata": fields{"name": name}, "usage": fields{"cpu": "120m", "memory": "800Mi"},
		}}
	}
	unavailable := apierrors.NewServiceUnavailable("the server is currently unable to handle the request")
	tests := []struct {
		name    string
		figures []*unstructured.Unstructured
		err     error
		status  Status
		words   string
	}{
		{"none", nil, notServed(nodeMetrics), NotApplicable, "no metrics-server"},
		{"down", nil, unavailable, Failed, "unable to handle"},
		{"measured", []*unstructured.Unstructured{figures("w1")}, nil, Passed, "w1 uses cpu 120m, memory 800Mi"},
		{"another only", []*unstructured.Unstructured{figures("w2")}, nil, Failed, "w1: metrics-server has no metrics"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := dynamicWorld(t, nil, tt.figures...)
			if tt.err != nil {
				d.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tt.err })
			}
			c := &Cluster{Kube: fake.NewClientset(member("w1", "192.0.2.1")), Dynamic: d}
			checkFinding(t, look(t, c.MonitoringChecks("w1"), "metrics-server"), tt.status, tt.words)
		})
	}
}

func TestGrafana(t *testing.T) {
	const health, search = "monitoring/grafana:80/api/health", "monitoring/grafana:80/api/search"
	healthy := reply{body: `{"database":"ok","version":"11.2.0"}`}
	labelled := service("monitoring", "kps-grafana", 80)
	labelled.Labels = map[string]string{"app.kubernetes.io/name": "grafana"}
	grafana := service("monitoring", "grafana", 80)
	tests := []struct {
		name    string
		service *corev1.Service
		replies map[string]reply
		status  Status
		words   string
	}{
		{"none", service("monitoring", "grafana-agent", 80), nil, NotApplicable, "no Grafana"},
		{"works", grafana, map[string]reply{health: healthy, search: {body: `[{"title":"Nodes"},{"title":"Pods"}]`}}, Passed, `11.2.0 has 2 dashboards, such as "Nodes"`},
		{"found by its label", labelled, map[string]reply{
			"monitoring/kps-grafana:80/api/health": healthy, "monitoring/kps-grafana:80/api/search": {body: `[{"title":"Nodes"}]`},
		}, Passed, "1 dashboards"},
		{"empty", grafana, map[string]reply{health: healthy, search: {body: `[]`}}, Warned, "no dashboard"},
		{"wants a login", grafana, map[string]reply{health: healthy, search: {err: apierrors.NewUnauthorized("unauthorized")}}, Warned, "without a login"},
		{"database fails", grafana, map[string]reply{health: {body: `{"database":"failing","version":"11.2.0"}`}}, Failed, `database is "failing"`},
		{"down", grafana, map[string]reply{health: {err: apierrors.NewServiceUnavailable("no endpoints available")}}, Failed, "no endpoints available"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &Cluster{Kube: kubeWith(t, tt.replies, tt.service), Dynamic: dynamicWorld(t, nil)}
			checkFinding(t, look(t, c.MonitoringChecks(""), "Grafana"), tt.status, tt.words)
		})
	}
}
