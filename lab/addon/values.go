package addon

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"k8slab/config"
	"k8slab/lab/session"
)

// addonValues are the Values of this lab.
func addonValues(s *session.Session, addons []Addon) (Values, error) {
	c := s.Cluster
	caches, err := cachesOf(c.Registries)
	return Values{
		GitNode: c.ControlPlanes()[0].Name, Sops: HasSops(s, addons), Pool: c.LoadBalancerPool(),
		Proxy: c.Network.Proxy, NoProxy: strings.Join(c.ProxyExceptions(), ","), Authority: c.Network.CAFile != "",
		RegistryPort: config.LabRegistryPort, Caches: caches, Revision: revision(caches),
	}, err
}

// revision tells whether caches are what they were.
func revision(caches []Cache) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%+v", caches))
	return hex.EncodeToString(sum[:8])
}

// cachesOf are the caches of the registries that have one.
func cachesOf(registries []config.Registry) ([]Cache, error) {
	var caches []Cache
	for i, r := range registries {
		if !r.Cache {
			continue
		}
		cache := Cache{Upstream: r.Upstream(), Dir: r.DirName(), Port: r.CachePort()}
		if r.CAFile != "" {
			text, err := os.ReadFile(r.CAFile)
			if err != nil {
				return nil, fmt.Errorf("registries[%d].ca_file of cluster.yaml: %w", i, err)
			}
			cache.Authority = base64.StdEncoding.EncodeToString(text)
		}
		caches = append(caches, cache)
	}
	return caches, nil
}
