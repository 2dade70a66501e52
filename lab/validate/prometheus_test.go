package validate

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
)

const (
	targetsOf = "monitoring/prometheus:9090/api/v1/targets"
	queryOf   = `monitoring/prometheus:9090/api/v1/query timestamp(node_time_seconds{instance="192.0.2.1:9100",job="nodes"})`
)

// scrape is a target as Prometheus shows it: discovered as a pod of a node, scraped at a URL.
func scrape(node, url, job, health string) string {
	return fmt.Sprintf(`{"discoveredLabels":{"__meta_kubernetes_pod_node_name":%q},"labels":{"instance":"192.0.2.1:9100","job":%q},
		"scrapeUrl":%q,"lastError":"connection refused","health":%q,"scrapeInterval":"15s"}`, node, job, url, health)
}

func active(targets string) map[string]reply {
	return map[string]reply{targetsOf: {body: `{"status":"success","data":{"activeTargets":[` + targets + `]}}`}}
}

func TestScraped(t *testing.T) {
	const url, elsewhere = "http://192.0.2.1:9100/metrics", "http://10.244.3.7:8080/metrics"
	node := member("w1", "192.0.2.1")
	up := scrape("w1", url, "nodes", "up")
	tests := []struct {
		name    string
		replies map[string]reply
		status  Status
		words   string
	}{
		{"up", active(up), Passed, "w1: 1 of 1 targets up"},
		{"found by its address alone", active(scrape("", url, "nodes", "up")), Passed, "1 of 1"},
		{"found by its job, behind a proxy", active(scrape("w1", "https://10.244.3.7:9443/metrics", "node-exporter", "up")), Passed, "1 of 1"},
		{"down", active(scrape("w1", url, "nodes", "down")), Failed, "target 192.0.2.1:9100 of job nodes is down: connection refused"},
		{"of another node", active(scrape("w2", "http://192.0.2.2:9100/metrics", "nodes", "up")), Failed, "w1: Prometheus has no target that is a node-exporter of it, of 0"},
		{"an application only", active(scrape("w1", elsewhere, "shop", "up")), Failed, "of 1 targets of it"},
		{"an application is down", active(up + "," + scrape("w1", elsewhere, "shop", "down")), Warned, "of job shop is down"},
		{"refuses", map[string]reply{targetsOf: {body: `{"status":"error","error":"not now"}`}}, Failed, "refused api/v1/targets: not now"},
		{"is something else", map[string]reply{targetsOf: {body: `<html>`}}, Failed, "read the answer of service monitoring/prometheus:9090"},
		{"does not answer", map[string]reply{targetsOf: {err: apierrors.NewServiceUnavailable("no endpoints available")}}, Failed, "no endpoints available"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &Cluster{Kube: kubeWith(t, tt.replies, node, service("monitoring", "prometheus", 9090)), Dynamic: dynamicWorld(t, nil)}
			f := look(t, c.MonitoringChecks("w1"), "Prometheus scrapes")
			if f.Next == "" && tt.status == Failed {
				f.Next = "the error says it"
			}
			checkFinding(t, f, tt.status, tt.words)
		})
	}
}

func TestSeriesArrive(t *testing.T) {
	const url = "http://192.0.2.1:9100/metrics"
	sampled := func(at string) string {
		return `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1000,"` + at + `"]}]}}`
	}
	slow := `{"discoveredLabels":{},"labels":{"instance":"192.0.2.1:9100","job":"nodes"},"scrapeUrl":"` + url + `","health":"up","scrapeInterval":"1m"}`
	tests := []struct {
		name    string
		targets string
		body    string
		status  Status
		words   string
	}{
		{"fresh", scrape("w1", url, "nodes", "up"), sampled("992.5"), Passed, "w1: node_time_seconds is 7.5s old"},
		{"stale", scrape("w1", url, "nodes", "up"), sampled("930"), Failed, "is 1m10s old, the limit is 1m0s"},
		{"no more than two scrapes", slow, sampled("890"), Passed, "1m50s"},
		{"more than two scrapes", slow, sampled("870"), Failed, "the limit is 2m0s"},
		{"none", scrape("w1", url, "nodes", "up"), `{"status":"success","data":{"resultType":"vector","result":[]}}`, Failed, "no node_time_seconds of target 192.0.2.1:9100"},
		{"no target", scrape("w2", "http://192.0.2.2:9100/metrics", "nodes", "up"), "", Failed, "no target that is a node-exporter"},
		{"strange", scrape("w1", url, "nodes", "up"), sampled("soon"), Failed, "read the answer"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			replies := active(tt.targets)
			replies[queryOf] = reply{body: tt.body}
			c := &Cluster{Kube: kubeWith(t, replies, member("w1", "192.0.2.1"), service("monitoring", "prometheus", 9090)), Dynamic: dynamicWorld(t, nil)}
			f := look(t, c.MonitoringChecks("w1"), "arrive in Prometheus")
			if tt.name == "strange" {
				f.Next = "the error says it"
			}
			checkFinding(t, f, tt.status, tt.words)
		})
	}
}

func TestFindPrometheus(t *testing.T) {
	headless := service("monitoring", "prometheus-operated", 9090)
	headless.Spec.ClusterIP = corev1.ClusterIPNone
	chart := service("metrics", "prometheus-server", 80)
	chart.Spec.Ports[0].TargetPort = intstr.FromInt32(9090)
	labelled := service("metrics", "k8s", 9090)
	labelled.Labels = map[string]string{"app.kubernetes.io/name": "prometheus"}
	tests := []struct {
		name     string
		services []runtime.Object
		want     string
	}{
		{"none", []runtime.Object{service("a", "grafana", 9090), service("a", "prometheus-node-exporter", 9100)}, ""},
		{"the lab's", []runtime.Object{headless, service("monitoring", "prometheus", 9090)}, "monitoring/prometheus:9090"},
		{"headless only", []runtime.Object{headless}, "monitoring/prometheus-operated:9090"},
		{"one with an address before one without", []runtime.Object{headless, service("monitoring", "prometheus-x", 9090)}, "monitoring/prometheus-x:9090"},
		{"a chart's", []runtime.Object{chart}, "metrics/prometheus-server:80"},
		{"by label", []runtime.Object{headless, labelled}, "metrics/k8s:9090"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, has, err := (&Cluster{Kube: fake.NewClientset(tt.services...)}).prometheus(t.Context())
			if err != nil || has != (tt.want != "") || has && s.String() != tt.want {
				t.Errorf("found %v %s, %v, wanted %q", has, s, err, tt.want)
			}
		})
	}
	c := &Cluster{Kube: fake.NewClientset(member("w1", "192.0.2.1")), Dynamic: dynamicWorld(t, nil)}
	checkFinding(t, look(t, c.MonitoringChecks("w1"), "Prometheus scrapes"), NotApplicable, "no Prometheus")
	checkFinding(t, look(t, c.MonitoringChecks("w1"), "arrive in"), NotApplicable, "no Prometheus")
}
