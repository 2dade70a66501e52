package scenarios

import (
	"context"
	"fmt"
	"strings"

	"k8slab/lab/symptom"
)

var staleCNI = Fault{
	Name:    "stale-cni",
	Story:   "an earlier pod network's configuration sorts first and wins, and pods get addresses that lead nowhere (worker-cni-join-fix)",
	Lab:     theProbe,
	Roles:   everyRole,
	Symptom: symptom.CNIStaleConfig,
	Inject: func(ctx context.Context, t Target) error {
		err := t.shell(ctx, t.Node, `
			cat > /etc/cni/net.d/00-old.conflist <<'END'
{"cniVersion": "1.0.0", "name": "old", "plugins": [{"type": "bridge", "bridge": "old0", "ipam": {"type": "host-local", "subnet": "10.99.0.0/24"}}]}
END`)
		if err != nil {
			return err
		}
		return t.renewProbe(ctx)
	},
	Effect: func(ctx context.Context, t Target) error {
		addresses, err := t.probeAddresses(ctx)
		switch {
		case err == nil && addresses == "":
			return fmt.Errorf("the probe of %s has no address yet", t.Node)
		case err == nil && !strings.Contains(addresses, "10.99.0."):
			return absent("the probe of %s has %q", t.Node, addresses)
		}
		return err
	},
	Recover: repair,
	Restore: script(`
		rm -f /etc/cni/net.d/00-old.conflist*
		rm -rf /var/lib/cni/networks/old
		! test -e /sys/class/net/old0 || ip link delete old0`),
	Join: &Join{Cause: symptom.CNIStaleConfig},
}
