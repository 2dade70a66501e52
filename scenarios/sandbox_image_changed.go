package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var sandboxImageChanged = Fault{
	Name:    "sandbox-image-changed",
	Story:   "containerd's configuration was replaced by one that names another pause image, which the machine cannot pull (kubeadm#684)",
	Lab:     theImage,
	Roles:   everyRole,
	Symptom: symptom.SandboxImageMisconfigured,
	Inject:  otherPause.make,
	Effect:  noSandboxImage,
	Recover: repair,
	Restore: each(otherPause.undo, script(dropSandboxes)),
}

var otherPause = edit{
	path: containerdConfig,
	how:  `sed --in-place "s|\(sandbox = \).*|\1'registry.k8s.io/pause:3.1'|" "$1"`,
	then: restartContainerd,
}

// noSandboxImage returns nil if no pod can start on the node for want of the pause image.
func noSandboxImage(ctx context.Context, t Target) error {
	return t.sandboxFails(ctx, "/pause:")
}
