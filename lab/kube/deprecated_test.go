package kube

import (
	"fmt"
	"reflect"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestDeprecatedAPIsOfMetrics(t *testing.T) {
	const metrics = `# HELP apiserver_requested_deprecated_apis [STABLE] Gauge of deprecated APIs that have been requested
# TYPE apiserver_requested_deprecated_apis gauge
apiserver_requested_deprecated_apis{group="flowcontrol.apiserver.k8s.io",removed_release="1.32",resource="flowschemas",subresource="",version="v1beta3"} 1
apiserver_requested_deprecated_apis{group="",removed_release="",resource="endpoints",subresource="",version="v1"} 1
# TYPE other counter
other 3
`
	got, err := parseDeprecated([]byte(metrics))
	if err != nil {
		t.Fatal(err)
	}
	if want := "[{endpoints.v1 } {flowschemas.v1beta3.flowcontrol.apiserver.k8s.io 1.32}]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
	if _, err := parseDeprecated([]byte("<html>")); err == nil {
		t.Error("what is no metrics is taken for none")
	}
}

func TestBlockedEvictions(t *testing.T) {
	budget := func(name string, wanted, healthy, expected, allowed int32) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Status: policyv1.PodDisruptionBudgetStatus{
				DesiredHealthy: wanted, CurrentHealthy: healthy, ExpectedPods: expected, DisruptionsAllowed: allowed},
		}
	}
	c := Of(fake.NewClientset(budget("all", 2, 2, 2, 0), budget("ill", 1, 1, 2, 0), budget("spare", 1, 2, 2, 1), budget("empty", 1, 0, 0, 0)))
	got, err := c.BlockedEvictions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []BlockedEviction{{"shop/all", "it wants 2 of 2 pods healthy, and 2 are", true}, {"shop/ill", "it wants 1 of 2 pods healthy, and 1 are", false}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
