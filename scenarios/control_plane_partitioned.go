package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var controlPlanePartitioned = Fault{
	Name:    "control-plane-partitioned",
	Story:   "a control plane reaches no other node, and none reaches it: a switch, a VLAN (control-plane-join-failures: network partition)",
	Roles:   controlPlane,
	Symptom: symptom.FirewallBlocked,
	Applies: threeControlPlanes,
	Inject: func(ctx context.Context, s Site) error {
		return s.wall(ctx, "ip saddr "+s.others()+" drop", "ip daddr "+s.others()+" drop")
	},
	Bites:   memberDown,
	Recover: repair,
	Stops:   true,
	Restore: openWall,
}
