package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var nodeDeleted = Fault{
	Name:    "node-deleted",
	Story:   "somebody deleted the Node of a machine that runs: its kubelet goes on and does not register again (kubernetes#71398)",
	Roles:   everyRole,
	Symptom: symptom.NodeNameMismatch,
	Inject: func(ctx context.Context, t Target) error {
		return t.shell(ctx, t.ControlPlane, asAdmin+`kubectl delete node "$1"`, t.Node)
	},
	Effect:  func(ctx context.Context, t Target) error { return gone("node", t.Node)(ctx, t) },
	Recover: repair,
	May:     []Change{Identity}, // a Node that registers again has another UID
}
