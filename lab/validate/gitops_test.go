package validate

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
)

var fluxKinds = []schema.GroupVersionResource{gitRepositories, kustomizations}

func TestFluxInstalled(t *testing.T) {
	tests := []struct {
		name   string
		served []schema.GroupVersionResource
		status Status
		words  string
	}{
		{"not at all", nil, NotApplicable, "the cluster has no Flux"},
		{"whole", fluxKinds, Passed, "0 GitRepositories, 0 Kustomizations"},
		{"sources only", fluxKinds[:1], Failed, "kustomizations.kustomize.toolkit.fluxcd.io is not served"},
		{"kustomizations only", fluxKinds[1:], Failed, "gitrepositories.source.toolkit.fluxcd.io is not served"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &Cluster{Kube: fake.NewClientset(), Dynamic: dynamicWorld(t, tt.served)}
			checkFinding(t, look(t, c.GitOpsChecks(), "Flux is installed"), tt.status, tt.words)
		})
	}
}

// controller is a Deployment of Flux.
func controller(name string, want, ready int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name, Generation: 1},
		Spec:       appsv1.DeploymentSpec{Replicas: &want}, Status: appsv1.DeploymentStatus{ObservedGeneration: 1, ReadyReplicas: ready, UpdatedReplicas: ready},
	}
}

func TestFluxControllers(t *testing.T) {
	old := controller("source-controller", 1, 1)
	old.Generation = 2
	source := controller("source-controller", 1, 1)
	tests := []struct {
		name    string
		served  []schema.GroupVersionResource
		objects []runtime.Object
		status  Status
		words   string
	}{
		{"no Flux", nil, nil, NotApplicable, "no Flux"},
		{"ready", fluxKinds, []runtime.Object{source, controller("kustomize-controller", 1, 1)}, Passed, "kustomize-controller is ready; source-controller is ready"},
		{"one is missing", fluxKinds, []runtime.Object{source}, Failed, "there is no deployment kustomize-controller"},
		{"one is down", fluxKinds, []runtime.Object{source, controller("kustomize-controller", 2, 1)}, Failed, "kustomize-controller: 1 of 2 pods ready"},
		{"one is off", fluxKinds, []runtime.Object{source, controller("kustomize-controller", 0, 0)}, Failed, "kustomize-controller is scaled to 0"},
		{"one is changing", fluxKinds, []runtime.Object{old, controller("kustomize-controller", 1, 1)}, Failed, "source-controller: generation 2 not observed"},
		{"another of its controllers", fluxKinds, []runtime.Object{
			source, controller("kustomize-controller", 1, 1), controller("helm-controller", 1, 0),
		}, Failed, "helm-controller: 0 of 1 pods ready"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &Cluster{Kube: fake.NewClientset(tt.objects...), Dynamic: dynamicWorld(t, tt.served)}
			checkFinding(t, look(t, c.GitOpsChecks(), "controllers"), tt.status, tt.words)
		})
	}
}

func TestFluxObjects(t *testing.T) {
	source := func(states ...state) *unstructured.Unstructured {
		return fluxDocument("GitRepository", "fleet", states...)
	}
	applied := func(states ...state) *unstructured.Unstructured {
		return fluxDocument("Kustomization", "nodes", states...)
	}
	bad := condition("Ready", "False", "GitOperationFailed", "authentication required")
	tests := []struct {
		name    string
		check   string
		objects []*unstructured.Unstructured
		status  Status
		words   []string
	}{
		{"fetched", "GitRepository", []*unstructured.Unstructured{source(at(newRevision))}, Passed, []string{"GitRepository flux-system/fleet has been at " + newRevision}},
		{"none", "GitRepository", nil, NotApplicable, []string{"no GitRepository"}},
		{"refused", "GitRepository", []*unstructured.Unstructured{source(bad)}, Failed, []string{"GitOperationFailed", "authentication required"}},
		{"nothing fetched yet", "GitRepository", []*unstructured.Unstructured{source(at(""))}, Failed, []string{"without a revision"}},
		{"suspended", "GitRepository", []*unstructured.Unstructured{source(at(newRevision), suspended)}, Warned, []string{"is suspended"}},
		{
			"a fault beside a suspended one", "GitRepository",
			[]*unstructured.Unstructured{source(suspended), fluxDocument("GitRepository", "other", bad)}, Failed, []string{"flux-system/other: condition Ready is False"},
		},
		{"applied", "Kustomization", []*unstructured.Unstructured{source(at(newRevision)), applied(at(newRevision))}, Passed, []string{"is at " + newRevision}},
		{"none to apply", "Kustomization", nil, NotApplicable, []string{"no Kustomization"}},
		{
			"behind its source", "Kustomization", []*unstructured.Unstructured{source(at(newRevision)), applied(at(oldRevision))},
			Failed, []string{"is at " + oldRevision + ", its source at " + newRevision},
		},
		{
			"another kind of source", "Kustomization",
			[]*unstructured.Unstructured{source(at(newRevision)), applied(at(oldRevision), set("OCIRepository", "spec", "sourceRef", "kind"))}, Passed, nil,
		},
		{
			"a source of another namespace", "Kustomization",
			[]*unstructured.Unstructured{source(at(newRevision)), applied(at(oldRevision), set("elsewhere", "spec", "sourceRef", "namespace"))}, Passed, nil,
		},
		{"not reported", "Kustomization", []*unstructured.Unstructured{applied()}, Failed, []string{"no Ready condition"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &Cluster{Kube: fake.NewClientset(), Dynamic: dynamicWorld(t, fluxKinds, tt.objects...)}
			checkFinding(t, look(t, c.GitOpsChecks(), "every "+tt.check), tt.status, tt.words...)
		})
	}
	for _, kind := range []string{"GitRepository", "Kustomization"} {
		c := &Cluster{Kube: fake.NewClientset(), Dynamic: dynamicWorld(t, nil)}
		checkFinding(t, look(t, c.GitOpsChecks(), "every "+kind), NotApplicable, "no Flux")
	}
}
