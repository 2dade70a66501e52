package validate

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// nodeMetrics is what metrics-server serves (k8s.io/metrics, v1beta1), and `kubectl top nodes` shows.
var nodeMetrics = schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "nodes"}

var exporterName = regexp.MustCompile(`node[-_]?exporter`)

// MonitoringChecks are the checks of the monitoring of a Node, or of all with "". A new Node appears only after the monitoring's own
// intervals, so await them.
func (c *Cluster) MonitoringChecks(node string) []Check {
	return []Check{
		check(AreaMonitoring, "a node-exporter runs on "+where(node), c.onNodes(node, c.exporterRuns)),
		check(AreaMonitoring, "Prometheus scrapes "+where(node), c.onNodes(node, c.scraped)),
		check(AreaMonitoring, "metrics of "+where(node)+" arrive in Prometheus", c.onNodes(node, c.seriesArrive)),
		check(AreaMonitoring, "metrics-server has metrics of "+where(node), c.onNodes(node, c.measured)),
		check(AreaMonitoring, "Grafana's dashboards are there", c.dashboards),
	}
}

// onNodes makes a check of a function of Nodes, for the named Node or for all.
func (c *Cluster) onNodes(node string, look func(context.Context, []corev1.Node) (Finding, error)) func(context.Context) (Finding, error) {
	return func(ctx context.Context) (Finding, error) {
		nodes, err := c.tested(ctx, node)
		if err != nil {
			return Finding{}, err
		}
		return look(ctx, nodes)
	}
}

func (c *Cluster) exporterRuns(ctx context.Context, nodes []corev1.Node) (Finding, error) {
	list, err := c.Kube.AppsV1().DaemonSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return Finding{}, fmt.Errorf("list daemonsets: %w", err)
	}
	sets := slices.DeleteFunc(list.Items, func(d appsv1.DaemonSet) bool { return !isExporter(d) })
	if len(sets) == 0 {
		return absent("the cluster has no DaemonSet whose name or labels say node-exporter"), nil
	}
	t, err := c.readyOn(ctx, sets, nodes)
	set := sets[0].Namespace + "/" + sets[0].Name
	next := "see `kubectl -n %s describe daemonset %s`: its tolerations and node selector must take the Node, its port 9100 must be free there"
	f := t.finding(fmt.Sprintf(next, sets[0].Namespace, sets[0].Name))
	if f.Status == Passed {
		f.Detail = fmt.Sprintf("DaemonSet %s is ready on %s", set, f.Detail)
	}
	return f, err
}

func isExporter(d appsv1.DaemonSet) bool {
	texts := []string{d.Name}
	for _, value := range d.Labels {
		texts = append(texts, value)
	}
	return slices.ContainsFunc(texts, exporterName.MatchString)
}

func (c *Cluster) measured(ctx context.Context, nodes []corev1.Node) (Finding, error) {
	const next = "see `kubectl get apiservice v1beta1.metrics.k8s.io` and metrics-server's log: it must reach the kubelet, port 10250"
	list, err := c.Dynamic.Resource(nodeMetrics).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return absent("the cluster has no metrics-server: metrics.k8s.io is not served"), nil
	case apierrors.IsServiceUnavailable(err):
		return fail(next, "metrics.k8s.io is registered and does not answer: %v", err), nil
	case err != nil:
		return Finding{}, fmt.Errorf("list NodeMetrics: %w", err)
	}
	var t tally
	for _, n := range nodes {
		i := slices.IndexFunc(list.Items, func(m unstructured.Unstructured) bool { return m.GetName() == n.Name })
		if i < 0 {
			t.faults = append(t.faults, n.Name+": metrics-server has no metrics of it")
			continue
		}
		usage, _, _ := unstructured.NestedStringMap(list.Items[i].Object, "usage")
		t.good = append(t.good, fmt.Sprintf("%s uses cpu %s, memory %s", n.Name, usage["cpu"], usage["memory"]))
	}
	return t.finding(next), nil
}

// webService is a Service that is asked through the API server's proxy.
type webService struct {
	namespace, name, port string
}

func (s webService) String() string { return s.namespace + "/" + s.name + ":" + s.port }

// findService picks the service with the highest rank, where 0 means that it does not fit, and the port to ask.
func (c *Cluster) findService(ctx context.Context, rank func(corev1.Service) (rank int, port int32)) (webService, bool, error) {
	list, err := c.Kube.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return webService{}, false, fmt.Errorf("list services: %w", err)
	}
	best, found := webService{}, 0
	for _, s := range list.Items {
		if r, port := rank(s); r > found {
			best, found = webService{s.Namespace, s.Name, fmt.Sprint(port)}, r
		}
	}
	return best, found > 0, nil
}

// askService gets a path of a service through the API server.
func (c *Cluster) askService(ctx context.Context, s webService, path string, params map[string]string) ([]byte, error) {
	body, err := c.Kube.CoreV1().Services(s.namespace).ProxyGet("", s.name, s.port, path, params).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask service %s for %s through the API server: %w", s, path, err)
	}
	return body, nil
}

// named ranks a Service by how certainly it belongs to the application; 0 means that it does not.
func named(s corev1.Service, application string) int {
	switch {
	case s.Name == application:
		return 3
	case s.Labels["app.kubernetes.io/name"] == application, s.Labels["app"] == application:
		return 2
	case strings.Contains(s.Name, application):
		return 1
	}
	return 0
}

// dashboards asks Grafana (its HTTP API, /api/health and /api/search), without credentials.
func (c *Cluster) dashboards(ctx context.Context) (Finding, error) {
	service, has, err := c.findService(ctx, func(s corev1.Service) (int, int32) {
		if len(s.Spec.Ports) == 0 || s.Spec.ClusterIP == corev1.ClusterIPNone || named(s, "grafana") < 2 {
			return 0, 0
		}
		return named(s, "grafana"), s.Spec.Ports[0].Port
	})
	if err != nil || !has {
		return absent("the cluster has no Grafana: no Service of that name or label"), err
	}
	next := "see `kubectl -n " + service.namespace + " get pods` and Grafana's log"
	body, err := c.askService(ctx, service, "api/health", nil)
	if err != nil {
		return fail(next, "%v", err), nil
	}
	var health struct {
		Database string `json:"database"`
		Version  string `json:"version"`
	}
	if err := json.Unmarshal(body, &health); err != nil {
		return Finding{}, fmt.Errorf("read the answer of service %s to /api/health: %w", service, err)
	}
	if health.Database != "ok" {
		return fail(next, "Grafana %s says that its database is %q", health.Version, health.Database), nil
	}
	body, err = c.askService(ctx, service, "api/search", map[string]string{"type": "dash-db"})
	if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
		return warn("check by hand that the dashboards show the node, or allow anonymous viewers in Grafana",
			"Grafana %s works; without a login it does not tell its dashboards", health.Version), nil
	}
	if err != nil {
		return Finding{}, err
	}
	var found []struct {
		Title string `json:"title"`
	}
	if err := json.Unmarshal(body, &found); err != nil {
		return Finding{}, fmt.Errorf("read the answer of service %s to /api/search: %w", service, err)
	}
	if len(found) == 0 {
		return warn("import a dashboard for nodes", "Grafana %s works, and shows no dashboard to visitors", health.Version), nil
	}
	return pass("Grafana %s has %d dashboards, such as %q", health.Version, len(found), found[0].Title), nil
}
