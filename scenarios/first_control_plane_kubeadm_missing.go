package scenarios

import (
	"context"
	"errors"
	"strings"

	"k8slab/lab/symptom"
)

var firstControlPlaneKubeadmMissing = Fault{
	Name:    "first-control-plane-kubeadm-missing",
	Story:   "kubeadm is gone from the control plane that is to make the join command: \"kubeadm: not found\" (worker-join-hanging)",
	Roles:   controlPlane,
	Alone:   "exit status 127 after 0.1 s",
	Applies: threeControlPlanes,
	Outside: true,
	Inject:  func(ctx context.Context, t Target) error { return hideKubeadm(ctx, t.atControlPlane()) },
	Effect: func(ctx context.Context, t Target) error {
		out, err := t.Run(ctx, t.ControlPlane, "sh", "-c", "kubeadm token create --dry-run >/dev/null 2>&1; echo status $?")
		if err == nil && !strings.Contains(out, "status 127") {
			err = errors.New("it makes a join command: " + strings.TrimSpace(out))
		}
		return err
	},
	Symptom: symptom.KubeBinariesMissing,
	Of:      func(t Target) []string { return []string{t.ControlPlane} },
	Recover: [][]string{{"join", Node}, {"repair"}}, // another control plane uploads the certificates; kubeadm comes back from the image
	Restore: func(ctx context.Context, t Target) error { return showKubeadm(ctx, t.atControlPlane()) },
	Lab:     theImage,
}

// atControlPlane is the same target with the healthy control plane as the node.
func (t Target) atControlPlane() Target {
	t.Node = t.ControlPlane
	return t
}
