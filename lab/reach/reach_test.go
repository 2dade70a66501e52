package reach

import (
	"fmt"
	"strings"
	"testing"

	"k8slab/lab/kube"
)

var cluster = []kube.Service{
	{Namespace: "default", Name: "kubernetes", ClusterIP: "10.96.0.1", Ports: []kube.ServicePort{{Name: "https", Number: 443}}},
	{Namespace: "default", Name: "web", ClusterIP: "10.96.0.7", Ports: []kube.ServicePort{{Number: 80}}},
	{Namespace: "a", Name: "web", ClusterIP: "10.96.0.8", Ports: []kube.ServicePort{{Name: "http", Number: 80}, {Name: "admin", Number: 8443}}},
	{Namespace: "a", Name: "db", ClusterIP: "None", Ports: []kube.ServicePort{{Number: 5432}}},
	{Namespace: "a", Name: "queue", ClusterIP: "10.96.0.9"},
	{Namespace: "b", Name: "queue", ClusterIP: "10.96.0.10"},
	{Namespace: "b", Name: "out", Ports: []kube.ServicePort{{Number: 80}}},
	{Namespace: "monitoring", Name: "prometheus", ClusterIP: "10.96.0.11", Ports: []kube.ServicePort{{Name: "http", Number: 9090}}},
}

func TestWhichServiceAndPort(t *testing.T) {
	for _, tt := range []struct{ service, port, want, err string }{
		{"web", "", "default/web 80", ""},
		{"a/web", "http", "a/web 80", ""},
		{"a/web", "8443", "a/web 8443", ""},
		{"a/web", "", "", "has several ports; next: name one with --port: 80 http, 8443 admin"},
		{"a/web", "https", "", `no TCP port "https"; next: name one with --port: 80 http, 8443 admin`},
		{"prometheus", "", "monitoring/prometheus 9090", ""},
		{"queue", "", "", "several namespaces have a service queue; next: name one of a/queue, b/queue"},
		{"a/queue", "", "", "has no TCP port"},
		{"promtheus", "", "", `no service "promtheus"`},
		{"a/wep", "", "", `no service "a/wep"; did you mean "a/web"?`},
		{"db", "", "", "headless"},
		{"out", "", "", "outside the cluster"},
	} {
		got, p := "", kube.ServicePort{}
		s, err := named(cluster, tt.service)
		if err == nil {
			p, err = portOf(s, tt.port)
		}
		if err == nil {
			got = fmt.Sprintf("%s %d", s, p.Number)
		}
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s %s: %q, %v", tt.service, tt.port, got, err)
		}
	}
}

func TestScheme(t *testing.T) {
	for _, tt := range []struct {
		port kube.ServicePort
		want string
	}{
		{kube.ServicePort{Number: 80}, "http"},
		{kube.ServicePort{Number: 443}, "https"},
		{kube.ServicePort{Name: "https-metrics", Number: 9100}, "https"},
		{kube.ServicePort{Name: "web", Number: 9100, Protocol: "https"}, "https"},
		{kube.ServicePort{Name: "web", Number: 443, Protocol: "http"}, "http"},
	} {
		if got := scheme(tt.port); got != tt.want {
			t.Errorf("%+v: %s", tt.port, got)
		}
	}
}
