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
	Inject: func(ctx context.Context, t Target) error {
		return t.wall(ctx, "ip saddr "+t.others()+" drop", "ip daddr "+t.others()+" drop")
	},
	Effect:  memberDown,
	Recover: repair,
	Remedy:  symptom.DeleteRule,
	Restore: openWall,
}
