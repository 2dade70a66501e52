package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var peerPortBlocked = Fault{
	Name:    "peer-port-blocked",
	Story:   "a firewall on a control plane drops what etcd's members tell each other (control-plane-join-failures: nc -zv 2380)",
	Roles:   controlPlane,
	Symptom: symptom.FirewallBlocked,
	Applies: threeControlPlanes,
	// In both directions, because a member also receives messages over connections that it opened.
	Inject: func(ctx context.Context, t Target) error {
		return t.wall(ctx, "tcp dport 2380 drop", "tcp dport 2380 drop")
	},
	Effect:  memberDown,
	Recover: repair,
	Remedy:  symptom.DeleteRule,
	Restore: openWall,
}
