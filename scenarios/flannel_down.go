package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var flannelDown = Fault{
	Name:    "flannel-down",
	Story:   "flannel's DaemonSet was deleted, and a restart of the node took what flannel had told the CNI plugin (worker-cni-join-fix)",
	Lab:     theFlannel,
	Roles:   workers,
	May:     []Change{Others}, // its pods go from all nodes
	Symptom: symptom.FlannelSubnetEnvMissing,
	Inject: func(ctx context.Context, t Target) error {
		if _, err := t.kubectl(ctx, "--namespace=kube-flannel", "delete", "daemonset", "flannel", "--cascade=foreground", "--timeout=60s"); err != nil {
			return err
		}
		return t.run(ctx, "rm", "--force", "/run/flannel/subnet.env")
	},
	Effect:  func(ctx context.Context, t Target) error { return t.sandboxFails(ctx, "subnet.env") },
	Recover: repair,
	Restore: script(dropSandboxes),
}
