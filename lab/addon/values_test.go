package addon

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"k8slab/config"
)

// Each registry with a cache has a container, a port and a configuration of its own.
func TestCaches(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, []byte("PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	hub := config.Registry{Name: "docker.io", Cache: true}
	private := config.Registry{Name: "registry.example:5000", Cache: true, CAFile: file, Mirrors: []string{`http://x/"\`}}
	caches, err := cachesOf([]config.Registry{hub, {Name: "quay.io"}, private})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(catalogue, func(a Addon) bool { return a.Name == "registry" })
	text, err := catalogue[i].Manifest(Values{GitNode: "cp1", Proxy: "http://proxy:3128", Authority: true, RegistryPort: 30500, Caches: caches, Revision: revision(caches)})
	if err != nil {
		t.Fatal(err)
	}
	var containers, volumes []string
	for _, object := range parse(t, text) {
		if pod, _ := podOf(object); pod != nil {
			for _, c := range pod.Containers {
				containers = append(containers, c.Name)
			}
			for _, v := range pod.Volumes {
				volumes = append(volumes, v.Name)
			}
		}
		if m, is := object.(*corev1.ConfigMap); is {
			its := m.Data["cache-"+portOf(private)+".yml"]
			for _, want := range []string{`rootdirectory: "/pulled/registry.example_5000"`, `remoteurl: "http://x/\"\\"`, `addr: ":` + portOf(private) + `"`} {
				if !strings.Contains(its, want) {
					t.Errorf("no %s in\n%s", want, its)
				}
			}
			if got := string(m.BinaryData["cache-"+portOf(private)+".crt"]); got != "PEM" || len(m.BinaryData) != 1 {
				t.Errorf("authorities: %q of %d", got, len(m.BinaryData))
			}
		}
	}
	if want := []string{"registry", "cache-" + portOf(hub), "cache-" + portOf(private)}; !slices.Equal(containers, want) {
		t.Errorf("containers %q", containers)
	}
	if want := []string{"pulled", "system-authorities", "lab-authorities", "images", "config"}; !slices.Equal(volumes, want) {
		t.Errorf("volumes %q", volumes)
	}
	if _, err := cachesOf([]config.Registry{{Name: "x.example", Cache: true, CAFile: file + ".gone"}}); err == nil || !strings.Contains(err.Error(), "registries[0].ca_file of cluster.yaml") {
		t.Errorf("got %v", err)
	}
}

func portOf(r config.Registry) string { return strconv.Itoa(r.CachePort()) }

// A cache of another upstream, or that believes another authority, is another pod.
func TestRevision(t *testing.T) {
	of := func(c Cache) string { return revision([]Cache{c}) }
	is := Cache{Upstream: "https://a.example", Dir: "a", Port: 30600, Authority: "QQ=="}
	same, moved, renewed := is, is, is
	moved.Upstream, renewed.Authority = "https://b.example", "Qg=="
	if of(same) != of(is) || of(is) == of(moved) || of(is) == of(renewed) {
		t.Errorf("%s, moved %s, renewed %s", of(is), of(moved), of(renewed))
	}
	if text := manifestWith(t, "registry", Values{Caches: []Cache{is}, Revision: of(is)}); !strings.Contains(text, of(is)) {
		t.Error("the pod does not have its revision")
	}
}
