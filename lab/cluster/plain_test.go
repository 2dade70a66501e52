package cluster

import (
	"strings"
	"testing"

	"k8slab/lab/join"
)

// Only where a machine may not set the limit of tracked connections, kube-proxy is told to leave it.
func TestProxyOfContainers(t *testing.T) {
	for _, fixed := range []bool{false, true} {
		text, err := ProxyOfContainers(map[string]join.Facts{"cp1": {}, "w1": {FixedConntrack: fixed}})
		if told := strings.Contains(text, "maxPerCore: 0"); err != nil || told != fixed || strings.HasPrefix(text, "---\n") != fixed {
			t.Errorf("fixed %t: %v\n%s", fixed, err, text)
		}
	}
}
