package kernel

import "testing"

func TestListsModule(t *testing.T) {
	list := "kernel/net/bridge/br_netfilter.ko.xz: kernel/net/bridge/bridge.ko.xz\nkernel/drivers/net/vxlan/vxlan.ko\nkernel/net/ip-tables.ko:\n"
	for module, want := range map[string]bool{"br_netfilter": true, "bridge": false, "vxlan": true, "ip_tables": true, "netfilter": false, "": false} {
		if got := listsModule(list, module); got != want {
			t.Errorf("%q: %t", module, got)
		}
	}
}
