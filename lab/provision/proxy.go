package provision

import (
	"fmt"
	"os"
	"strings"

	"k8slab/config"
)

const (
	// environmentFile is what containerd's and kubelet's units read.
	environmentFile = "etc/k8slab/environment"
	authorityDir    = "etc/k8slab/ca"
)

// proxyFiles are a node's files for the proxy and the authorities of cluster.yaml.
func proxyFiles(c *config.Cluster) (map[string]seedFile, error) {
	files, lines := map[string]seedFile{}, []string{}
	if proxy := c.Network.Proxy; proxy != "" {
		lines = append(lines, "HTTP_PROXY="+proxy, "HTTPS_PROXY="+proxy, "NO_PROXY="+strings.Join(c.ProxyExceptions(), ","))
	}
	if file := c.Network.CAFile; file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("network.ca_file of cluster.yaml: %w", err)
		}
		files[authorityDir+"/ca.pem"] = seedFile{0o644, string(text)}
		lines = append(lines, "SSL_CERT_DIR=/etc/ssl/certs:/"+authorityDir) // Go's programs read all of them
	}
	if len(lines) > 0 {
		files[environmentFile] = seedFile{0o644, strings.Join(lines, "\n") + "\n"}
	}
	return files, nil
}
