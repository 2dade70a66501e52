package session

import (
	"net/netip"
	"slices"
	"testing"

	"k8slab/config"
)

func TestEtcdEndpoints(t *testing.T) {
	cps := []config.Node{{Name: "cp1", IP: netip.MustParseAddr("10.1.0.1")}, {Name: "cp2", IP: netip.MustParseAddr("10.1.0.2")}}
	if got, want := (etcdAccess{}).endpoints(cps), []string{"https://10.1.0.1:2379", "https://10.1.0.2:2379"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	external := []string{"https://a.lan:2379", "https://b.lan:2380"}
	if got := (etcdAccess{external: external}).endpoints(cps); !slices.Equal(got, external) {
		t.Errorf("%q", got)
	}
}
