package addon

import (
	"slices"
	"strings"
	"testing"

	"k8slab/config"
)

func names(addons []Addon) string {
	var all []string
	for _, a := range addons {
		all = append(all, a.Name)
	}
	return strings.Join(all, " ")
}

func TestResolve(t *testing.T) {
	tests := []struct{ name, names, want, err string }{
		{"none", "", "", ""},
		{"one", "local-path", "local-path", ""},
		{"after what it needs", "prometheus", "node-exporter prometheus", ""},
		{"each once", "prometheus node-exporter prometheus", "node-exporter prometheus", ""},
		{"as given otherwise", "prometheus metrics-server local-path", "node-exporter prometheus metrics-server local-path", ""},
		{"unknown", "istio prometheus linkerd", "", `no add-on "istio", "linkerd"; there are `},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Resolve(strings.Fields(tt.names))
			if names(got) != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.HasPrefix(err.Error(), tt.err) {
				t.Errorf("got %q, %v", names(got), err)
			}
		})
	}
}

func TestCatalogue(t *testing.T) {
	all := All()
	if !slices.IsSortedFunc(all, func(a, b Addon) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("not in alphabetical order: %s", names(all))
	}
	for _, a := range all {
		t.Run(a.Name, func(t *testing.T) {
			if !slices.Contains(config.AddonNames, a.Name) {
				t.Error("cluster.yaml cannot list it")
			}
			if a.Purpose == "" || strings.HasSuffix(a.Purpose, ".") {
				t.Errorf("purpose %q", a.Purpose)
			}
			for _, needed := range a.Needs {
				if !slices.ContainsFunc(all, func(o Addon) bool { return o.Name == needed }) {
					t.Errorf("it needs %s, which is not an add-on", needed)
				}
			}
			if _, err := Resolve([]string{a.Name}); err != nil {
				t.Error(err)
			}
		})
	}
	files, err := manifests.ReadDir("manifests")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !slices.ContainsFunc(all, func(a Addon) bool { return a.Name+".yaml" == f.Name() }) {
			t.Errorf("manifests/%s is of no add-on", f.Name())
		}
	}
}
