package provision

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8slab/config"
)

func TestRegistryFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca, login := file("ca.pem", "PEM\n", 0o644), file("login", "me:se:cret\n", 0o600)
	of := func(registries ...config.Registry) *config.Cluster {
		return &config.Cluster{Registries: registries}
	}
	node := netip.MustParseAddr("10.30.0.21")
	files, err := registryFiles(of([]config.Registry{
		{Name: "docker.io", Mirrors: []string{"http://10.1.0.1:5000", "https://mirror.example/v2"}, CredentialsFile: login},
		{Name: "registry.example:5000", CAFile: ca, CredentialsFile: login},
		{Name: "quay.io", Cache: true},
	}...), node)
	if err != nil {
		t.Fatal(err)
	}
	const certs = "etc/containerd/certs.d/"
	want := map[string]string{
		certs + "localhost:5000/hosts.toml": "[host.\"http://10.30.0.21:30500\"]\ncapabilities = [\"pull\", \"resolve\"]\n",
		certs + "docker.io/hosts.toml": "[host.\"http://10.1.0.1:5000\"]\ncapabilities = [\"pull\", \"resolve\"]\n" +
			"[host.\"https://mirror.example/v2\"]\ncapabilities = [\"pull\", \"resolve\"]\n",
		certs + "quay.io/hosts.toml":               "[host.\"http://10.30.0.21:30786\"]\ncapabilities = [\"pull\", \"resolve\"]\n",
		certs + "registry.example:5000/hosts.toml": "ca = \"/" + certs + "registry.example:5000/ca.crt\"\n",
		certs + "registry.example:5000/ca.crt":     "PEM\n",
		".docker/config.json":                      `{"auths":{"https://index.docker.io/v1/":{"auth":"bWU6c2U6Y3JldA=="},"registry.example:5000":{"auth":"bWU6c2U6Y3JldA=="}}}`,
	}
	for name, text := range want {
		if files[name].text != text {
			t.Errorf("%s: %q", name, files[name].text)
		}
	}
	if len(files) != len(want) || files[".docker/config.json"].mode != 0o600 {
		t.Errorf("%v", files)
	}

	bad := []struct {
		name, says string
		r          config.Registry
	}{
		{"no authority", "registries[0].ca_file of cluster.yaml: open " + dir, config.Registry{CAFile: filepath.Join(dir, "none")}},
		{"others read it", "registries[0].credentials_file of cluster.yaml: others can read", config.Registry{CredentialsFile: file("open", "a:b", 0o644)}},
		{"no password", "does not have one line USER:PASSWORD", config.Registry{CredentialsFile: file("half", "me", 0o600)}},
		{"two lines", "does not have one line USER:PASSWORD", config.Registry{CredentialsFile: file("two", "a:b\nc:d\n", 0o600)}},
	}
	for _, tt := range bad {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := registryFiles(of(tt.r), node); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}
