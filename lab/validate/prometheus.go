package validate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	prometheusPort = 9090
	exporterPort   = "9100"
	// freshness is the age up to which a sample is a present one, unless Prometheus scrapes more seldom than that allows.
	freshness = time.Minute
	// noPrometheus is the detail where there is none.
	noPrometheus = "the cluster has no Prometheus: no Service of that name or label with port 9090"
)

// target is what Prometheus says of one thing that it scrapes (its HTTP API v1, /targets).
type target struct {
	DiscoveredLabels map[string]string `json:"discoveredLabels"`
	Labels           map[string]string `json:"labels"`
	ScrapeURL        string            `json:"scrapeUrl"`
	LastError        string            `json:"lastError"`
	Health           string            `json:"health"`         // up, down or unknown
	ScrapeInterval   string            `json:"scrapeInterval"` // such as "15s", of Prometheus 2.28 and newer
}

func (t target) String() string {
	return fmt.Sprintf("target %s of job %s", t.Labels["instance"], t.Labels["job"])
}

// of reports whether the target is on the Node: its discovery says so, or it is scraped at the Node's address.
func (t target) of(n *corev1.Node) bool {
	for name, value := range t.DiscoveredLabels {
		// __meta_kubernetes_node_name, _pod_node_name, _endpoint_node_name, as the target was found
		if value == n.Name && strings.HasPrefix(name, "__meta_kubernetes_") && strings.HasSuffix(name, "node_name") {
			return true
		}
	}
	return t.Labels["node"] == n.Name || slices.Contains(namesOf(n), t.host())
}

// exporter reports whether the target is a node-exporter.
func (t target) exporter() bool {
	u, err := url.Parse(t.ScrapeURL)
	if err == nil && u.Port() == exporterPort {
		return true
	}
	found := t.DiscoveredLabels
	names := []string{t.Labels["job"], found["__meta_kubernetes_pod_name"], found["__meta_kubernetes_service_name"]}
	return slices.ContainsFunc(names, exporterName.MatchString)
}

func (t target) host() string {
	u, err := url.Parse(t.ScrapeURL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// namesOf are the names and addresses under which a Node is scraped.
func namesOf(n *corev1.Node) []string {
	names := []string{n.Name}
	for _, a := range n.Status.Addresses {
		names = append(names, a.Address)
	}
	return names
}

func (c *Cluster) prometheus(ctx context.Context) (webService, bool, error) {
	return c.findService(ctx, func(s corev1.Service) (int, int32) {
		rank := 2 * named(s, "prometheus")
		i := slices.IndexFunc(s.Spec.Ports, func(p corev1.ServicePort) bool {
			return p.Port == prometheusPort || p.TargetPort.IntValue() == prometheusPort
		})
		if rank == 0 || i < 0 {
			return 0, 0
		}
		if s.Spec.ClusterIP != corev1.ClusterIPNone { // the operator's headless one is beside a proper one
			rank++
		}
		return rank, s.Spec.Ports[i].Port
	})
}

// answer asks Prometheus' HTTP API.
func (c *Cluster) answer(ctx context.Context, s webService, path string, params map[string]string, data any) error {
	body, err := c.askService(ctx, s, path, params)
	if err != nil {
		return err
	}
	reply := struct {
		Status string `json:"status"`
		Error  string `json:"error"`
		Data   any    `json:"data"`
	}{Data: data}
	if err := json.Unmarshal(body, &reply); err != nil {
		return fmt.Errorf("read the answer of service %s to %s: %w", s, path, err)
	}
	if reply.Status != "success" {
		return fmt.Errorf("service %s refused %s: %s", s, path, reply.Error)
	}
	return nil
}

// targets are those that the cluster's Prometheus has, if there is one.
func (c *Cluster) targets(ctx context.Context) (s webService, all []target, has bool, err error) {
	if s, has, err = c.prometheus(ctx); err != nil || !has {
		return s, nil, has, err
	}
	var data struct {
		ActiveTargets []target `json:"activeTargets"`
	}
	err = c.answer(ctx, s, "api/v1/targets", map[string]string{"state": "active"}, &data)
	return s, data.ActiveTargets, true, err
}

func (c *Cluster) scraped(ctx context.Context, nodes []corev1.Node) (Finding, error) {
	service, all, has, err := c.targets(ctx)
	if err != nil || !has {
		return absent(noPrometheus), err
	}
	var t tally
	for _, n := range nodes {
		t.judgeTargets(&n, slices.DeleteFunc(slices.Clone(all), func(t target) bool { return !t.of(&n) }))
	}
	return t.finding("see the targets of Prometheus (service " + service.String() + ", /targets): its discovery must find the Node, and reach port " +
		exporterPort + " there"), nil
}

// judgeTargets requires a node-exporter that is up. If another target of the Node is down, such as an application's, that is a warning.
func (t *tally) judgeTargets(n *corev1.Node, targets []target) {
	up := 0
	exporters := 0
	for _, target := range targets {
		fault := fmt.Sprintf("%s: %s is %s: %s", n.Name, target, target.Health, target.LastError)
		switch {
		case target.exporter() && target.Health == "up":
			up, exporters = up+1, exporters+1
		case target.exporter():
			exporters++
			t.faults = append(t.faults, fault)
		case target.Health == "up":
			up++
		default:
			t.warnings = append(t.warnings, fault)
		}
	}
	if exporters == 0 {
		t.faults = append(t.faults, fmt.Sprintf("%s: Prometheus has no target that is a node-exporter of it, of %d targets of it", n.Name, len(targets)))
	}
	t.good = append(t.good, fmt.Sprintf("%s: %d of %d targets up", n.Name, up, len(targets)))
}

func (c *Cluster) seriesArrive(ctx context.Context, nodes []corev1.Node) (Finding, error) {
	service, all, has, err := c.targets(ctx)
	if err != nil || !has {
		return absent(noPrometheus), err
	}
	var t tally
	for _, n := range nodes {
		i := slices.IndexFunc(all, func(t target) bool { return t.exporter() && t.of(&n) })
		if i < 0 {
			t.faults = append(t.faults, n.Name+": Prometheus has no target that is a node-exporter of it")
			continue
		}
		age, found, err := c.sampleAge(ctx, service, all[i])
		switch limit := all[i].freshness(); {
		case err != nil:
			return Finding{}, err
		case !found:
			t.faults = append(t.faults, fmt.Sprintf("%s: Prometheus has no node_time_seconds of %s", n.Name, all[i]))
		case age > limit:
			t.faults = append(t.faults, fmt.Sprintf("%s: the last node_time_seconds of %s is %s old, the limit is %s", n.Name, all[i], age, limit))
		default:
			t.good = append(t.good, fmt.Sprintf("%s: node_time_seconds is %s old", n.Name, age))
		}
	}
	return t.finding("see Prometheus' log and clock, and `kubectl -n " + service.namespace + " get pods`; another scrape follows within its interval"), nil
}

// freshness is how old the last sample may be: two scrapes, where those are more than half a minute apart (Prometheus' default is a
// minute).
func (t target) freshness() time.Duration {
	interval, err := time.ParseDuration(t.ScrapeInterval)
	if err != nil {
		return freshness
	}
	return max(freshness, 2*interval)
}

// sampleAge asks for the age of the target's last node_time_seconds, by Prometheus' clock; found is false if there is none.
func (c *Cluster) sampleAge(ctx context.Context, s webService, of target) (age time.Duration, found bool, err error) {
	query := fmt.Sprintf("timestamp(node_time_seconds{instance=%s,job=%s})", strconv.Quote(of.Labels["instance"]), strconv.Quote(of.Labels["job"]))
	var data struct {
		Result []struct {
			Value [2]any `json:"value"` // the time of the query, and the result as text
		} `json:"result"`
	}
	if err := c.answer(ctx, s, "api/v1/query", map[string]string{"query": query}, &data); err != nil || len(data.Result) == 0 {
		return 0, false, err
	}
	asked, isNumber := data.Result[0].Value[0].(float64)
	text, isText := data.Result[0].Value[1].(string)
	sampled, err := strconv.ParseFloat(text, 64)
	if !isNumber || !isText || err != nil {
		return 0, false, fmt.Errorf("read the answer of service %s to %s: %v", s, query, data.Result[0].Value)
	}
	return time.Duration((asked - sampled) * float64(time.Second)).Truncate(time.Millisecond), true, nil
}
