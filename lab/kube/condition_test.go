package kube

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestObjectReady(t *testing.T) {
	condition := func(kind, status string) fields {
		return fields{"type": kind, "status": status, "reason": "BuildFailed", "message": "no such file"}
	}
	tests := []struct {
		name   string
		status fields
		err    string // "" for ready
	}{
		{"ready", fields{"observedGeneration": 3, "conditions": []fields{condition("Reconciling", "True"), condition("Ready", "True")}}, ""},
		{"not ready", fields{"observedGeneration": 3, "conditions": []fields{condition("Ready", "False")}},
			"kustomizations.kustomize.toolkit.fluxcd.io flux-system/lab is not Ready: BuildFailed: no such file"},
		{"not known", fields{"observedGeneration": 3, "conditions": []fields{condition("Ready", "Unknown")}}, "is not Ready"},
		{"ready before the last change", fields{"observedGeneration": 2, "conditions": []fields{condition("Ready", "True")}}, "generation 3 not observed"},
		{"no condition", fields{"observedGeneration": 3}, "has no condition Ready yet"},
		{"no status", nil, "generation 3 not observed"},
	}
	resource := schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFakeAPI(t)
			f.on("GET /apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations/lab", 200, fields{
				"kind": "Kustomization", "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "metadata": fields{"name": "lab", "generation": 3}, "status": tt.status})
			c, _ := f.client()
			err := c.ObjectReady(t.Context(), resource, "flux-system", "lab")
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}
