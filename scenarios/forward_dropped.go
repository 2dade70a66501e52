package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var forwardDropped = Fault{
	Name:    "forward-dropped",
	Story:   "a firewall drops what the node would forward: it is Ready, and its pods reach nothing outside of it (flannel#799)",
	Lab:     theProbe,
	Roles:   everyRole,
	Symptom: symptom.FirewallBlocked,
	Applies: seenFromOutside,
	Inject: func(ctx context.Context, t Target) error {
		return t.run(ctx, "nft", "table inet fault { chain forward { type filter hook forward priority -5; policy drop; }; }")
	},
	Effect:  probeUnreachable,
	Recover: repair,
	Remedy:  symptom.AcceptPackets,
	Restore: openWall,
}
