package provision

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path"
	"strings"

	"k8slab/config"
	"k8slab/lab/atomicfile"
)

const (
	registryDir = "etc/containerd/certs.d" // containerd reads it at each pull
	// loginFile is in docker's format. kubelet looks for it there, and gives containerd what it has for a registry.
	loginFile = ".docker/config.json"
	// dockerHub is the name that docker.io has in it.
	dockerHub = "https://index.docker.io/v1/"
	// mostLogin bounds a file of credentials, in bytes.
	mostLogin = 4 << 10
)

// registryFiles are a node's files for the registries of cluster.yaml, and for that of the add-on, which may be installed later: every node
// has it and its caches at its own address, and kube-proxy at no other of the node's. https://github.com/containerd/containerd/blob/main/docs/hosts.md
// describes hosts.toml.
func registryFiles(c *config.Cluster, node netip.Addr) (map[string]seedFile, error) {
	files := map[string]seedFile{
		path.Join(registryDir, config.LabRegistry, "hosts.toml"): {0o644, mirrorAt(fmt.Sprintf("http://%s:%d", node, config.LabRegistryPort))},
	}
	logins := map[string]map[string]string{}
	for i, r := range c.Registries {
		at := fmt.Sprintf("registries[%d].", i)
		dir := path.Join(registryDir, r.Name)
		authority := ""
		if r.CAFile != "" {
			text, err := os.ReadFile(r.CAFile)
			if err != nil {
				return nil, fmt.Errorf("%sca_file of cluster.yaml: %w", at, err)
			}
			files[path.Join(dir, "ca.crt")] = seedFile{0o644, string(text)}
			authority = fmt.Sprintf("ca = %q\n", "/"+path.Join(dir, "ca.crt"))
		}
		hosts := authority
		if r.Cache {
			hosts += mirrorAt(fmt.Sprintf("http://%s:%d", node, r.CachePort()))
		}
		for _, mirror := range r.Mirrors {
			hosts += mirrorAt(mirror) + authority
		}
		if hosts != "" {
			files[path.Join(dir, "hosts.toml")] = seedFile{0o644, hosts}
		}
		if r.CredentialsFile != "" {
			login, err := credentials(r.CredentialsFile)
			if err != nil {
				return nil, fmt.Errorf("%scredentials_file of cluster.yaml: %w", at, err)
			}
			name := r.Name
			if name == "docker.io" {
				name = dockerHub
			}
			logins[name] = map[string]string{"auth": login}
		}
	}
	if len(logins) > 0 {
		text, err := json.Marshal(map[string]any{"auths": logins})
		if err != nil {
			return nil, err
		}
		files[loginFile] = seedFile{0o600, string(text)}
	}
	return files, nil
}

// mirrorAt is a server of hosts.toml that containerd asks before the registry.
func mirrorAt(url string) string {
	return fmt.Sprintf("[host.%q]\ncapabilities = [\"pull\", \"resolve\"]\n", url)
}

// credentials are those of a file with the line USER:PASSWORD, as docker writes them.
func credentials(file string) (string, error) {
	text, err := atomicfile.ReadPrivate(file, mostLogin)
	if err != nil {
		return "", err
	}
	line := strings.TrimRight(string(text), "\r\n")
	if user, password, is := strings.Cut(line, ":"); !is || user == "" || password == "" || strings.ContainsAny(line, "\r\n") {
		return "", fmt.Errorf("%s does not have one line USER:PASSWORD", file)
	}
	return base64.StdEncoding.EncodeToString([]byte(line)), nil
}
