package session

import (
	"net/netip"
	"slices"
	"testing"

	"k8slab/config"
)

func TestExternalEtcd(t *testing.T) {
	cp := config.Node{Name: "cp1", IP: netip.MustParseAddr("10.1.0.1")}
	for servers, external := range map[string]bool{
		"":                       false, // no manifest, or one that is broken
		"https://127.0.0.1:2379": false,
		"https://localhost:2379": false,
		"https://10.1.0.1:2379":  false,
		"https://127.0.0.1:2379,https://10.1.0.2:2379": false,
		"https://10.1.0.9:2379":                        true,
		"https://a.lan:2379,https://b.lan:2380":        true,
	} {
		if got := externalEtcd(servers, cp); (got != nil) != external {
			t.Errorf("%s: %q", servers, got)
		}
	}
	want := []string{"https://a.lan:2379", "https://b.lan:2380"}
	if got := (etcdAccess{external: externalEtcd("https://a.lan:2379,https://b.lan:2380", cp)}).endpoints([]config.Node{cp}); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
