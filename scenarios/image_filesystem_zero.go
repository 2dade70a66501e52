package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var imageFilesystemZero = Fault{
	Name:    "image-filesystem-zero",
	Story:   "what is mounted on the directory of containerd's images has no size, and no pod starts (enhanced-kubernetes-join)",
	Roles:   workers,
	Symptom: symptom.ImageFilesystemZero,
	Remedy:  symptom.Unmount,
	// A tmpfs without a limit has no size.
	Inject:  script(`mount -t tmpfs -o size=0 fault ` + imageDirectory),
	Effect:  func(ctx context.Context, t Target) error { return t.sandboxFails(ctx, imageDirectory) },
	Recover: repair,
	Restore: each(unmounts(imageDirectory), script(dropSandboxes)),
}

const imageDirectory = "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs"
