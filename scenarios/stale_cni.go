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
	Roles:   everyRole,
	Symptom: symptom.CNIStaleConfig,
	Inject: func(ctx context.Context, s Site) error {
		err := s.shell(ctx, s.Node, `
			cat > /etc/cni/net.d/00-old.conflist <<'END'
{"cniVersion": "1.0.0", "name": "old", "plugins": [{"type": "bridge", "bridge": "old0", "ipam": {"type": "host-local", "subnet": "10.99.0.0/24"}}]}
END`)
		if err != nil {
			return err
		}
		return s.renewProbe(ctx)
	},
	Bites: func(ctx context.Context, s Site) error {
		addresses, err := s.probeAddresses(ctx)
		switch {
		case err == nil && addresses == "":
			return fmt.Errorf("the probe of %s has no address yet", s.Node)
		case err == nil && !strings.Contains(addresses, "10.99.0."):
			return absent("the probe of %s has %q", s.Node, addresses)
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
