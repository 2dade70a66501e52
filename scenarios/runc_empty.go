package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var runcEmpty = Fault{
	Name:    "runc-empty",
	Story:   "an update of runc was cut off and left an empty program: what runs goes on, and no container starts (tke#1671)",
	Lab:     theImage,
	Roles:   everyRole,
	Symptom: symptom.FileChanged,
	Inject:  emptyRunc.make,
	Effect:  func(ctx context.Context, t Target) error { return t.sandboxFails(ctx, "runc") },
	Recover: repair,
	Restore: each(emptyRunc.undo, script(dropSandboxes)),
}

// A new file, because the kernel lets nobody write to a program that runs.
var emptyRunc = edit{
	path: "/usr/sbin/runc",
	how: `
		rm "$1"
		install --mode 755 /dev/null "$1"`,
}
