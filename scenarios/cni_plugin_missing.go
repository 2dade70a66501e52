package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var cniPluginMissing = Fault{
	Name:    "cni-plugin-missing",
	Story:   "the CNI plugins were deleted with the directory that they are in (worker-cni-join-fix)",
	Lab:     theImage,
	Roles:   everyRole,
	Symptom: symptom.CNIPluginBinaryMissing,
	Inject:  on("rm", "--force", "/opt/cni/bin/bridge", "/opt/cni/bin/loopback", "/opt/cni/bin/flannel"),
	Effect:  func(ctx context.Context, t Target) error { return t.sandboxFails(ctx, "failed to find plugin") },
	Recover: repair,
	Restore: script(`cp --archive --no-clobber /usr/share/k8slab/cni-plugins/. /opt/cni/bin` + dropSandboxes),
	Join:    &Join{Cause: symptom.CNIPluginBinaryMissing},
}
