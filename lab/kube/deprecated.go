package kube

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// DeprecatedAPI is a version of an API that somebody has asked this API server for since it started.
type DeprecatedAPI struct {
	Resource string // such as flowschemas.v1beta3.flowcontrol.apiserver.k8s.io
	Removed  string // the first MAJOR.MINOR of Kubernetes that does not have it; "" where that is not decided
}

// DeprecatedAPIs are those that were asked for: its metric apiserver_requested_deprecated_apis.
func (c *Client) DeprecatedAPIs(ctx context.Context) ([]DeprecatedAPI, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	text, err := c.set.Discovery().RESTClient().Get().AbsPath("/metrics").Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("read the API server's metrics: %w", err)
	}
	return parseDeprecated(text)
}

func parseDeprecated(text []byte) (found []DeprecatedAPI, err error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read the API server's metrics: %w", err)
	}
	for _, m := range families["apiserver_requested_deprecated_apis"].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		name := strings.TrimSuffix(labels["resource"]+"."+labels["version"]+"."+labels["group"], ".")
		found = append(found, DeprecatedAPI{Resource: name, Removed: labels["removed_release"]})
	}
	slices.SortFunc(found, func(a, b DeprecatedAPI) int { return strings.Compare(a.Resource, b.Resource) })
	return found, nil
}

// BlockedEviction is a PodDisruptionBudget that allows no pod to be evicted.
type BlockedEviction struct {
	Name  string // NAMESPACE/NAME
	Why   string
	Never bool // it allows none even if all its pods are healthy
}

// BlockedEvictions are those of the cluster.
func (c *Client) BlockedEvictions(ctx context.Context) (blocked []BlockedEviction, err error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	list, err := c.set.PolicyV1().PodDisruptionBudgets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list PodDisruptionBudgets: %w", err)
	}
	for _, b := range list.Items {
		if s := b.Status; s.DisruptionsAllowed == 0 && s.ExpectedPods > 0 {
			blocked = append(blocked, BlockedEviction{
				Name:  b.Namespace + "/" + b.Name,
				Why:   fmt.Sprintf("it wants %d of %d pods healthy, and %d are", s.DesiredHealthy, s.ExpectedPods, s.CurrentHealthy),
				Never: s.DesiredHealthy >= s.ExpectedPods,
			})
		}
	}
	return blocked, nil
}
