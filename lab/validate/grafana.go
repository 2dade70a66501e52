package validate

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

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
