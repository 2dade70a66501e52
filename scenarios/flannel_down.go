package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var flannelDown = Fault{
	Name:    "flannel-down",
	Story:   "flannel's DaemonSet was deleted, and a restart of the node took what flannel had told the CNI plugin (worker-cni-join-fix)",
	Roles:   workers,
	May:     []Change{Others}, // its pods go from all nodes
	Symptom: symptom.FlannelSubnetEnvMissing,
	Inject: func(ctx context.Context, s Site) error {
		if _, err := s.kubectl(ctx, "--namespace=kube-flannel", "delete", "daemonset", "flannel", "--cascade=foreground", "--timeout=60s"); err != nil {
			return err
		}
		return s.run(ctx, "rm", "--force", "/run/flannel/subnet.env")
	},
	Bites:   func(ctx context.Context, s Site) error { return s.sandboxFails(ctx, "subnet.env") },
	Recover: repair,
	Restore: script(dropSandboxes),
}
