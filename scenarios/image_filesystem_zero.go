package scenarios

import (
	"context"
	"encoding/json"
	"fmt"

	"k8slab/lab/symptom"
)

var imageFilesystemZero = Fault{
	Name:    "image-filesystem-zero",
	Story:   "kubelet says invalid capacity 0 on image filesystem: what is mounted on containerd's directory has no size (enhanced-kubernetes-join)",
	Roles:   workers,
	Symptom: symptom.ImageFilesystemZero,
	Stops:   true,
	// A tmpfs without a limit has no size.
	Inject: script(`mount -t tmpfs -o size=0 fault ` + imageDirectory),
	Bites: func(ctx context.Context, s Site) error {
		out, err := s.askKubelet(ctx, "stats/summary")
		var summary struct {
			Node struct {
				Runtime struct {
					ImageFs struct{ CapacityBytes uint64 }
				}
			}
		}
		if err == nil {
			err = json.Unmarshal([]byte(out), &summary)
		}
		if size := summary.Node.Runtime.ImageFs.CapacityBytes; err == nil && size > 0 {
			err = fmt.Errorf("the kubelet of %s has %d bytes for images", s.Node, size)
		}
		return err
	},
	Recover: repair,
	Restore: script(`
		while grep -q '^fault ` + imageDirectory + ` ' /proc/mounts; do
			umount --lazy ` + imageDirectory + `
		done`),
}

const imageDirectory = "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs"
