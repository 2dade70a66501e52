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
	Inject:  func(ctx context.Context, s Site) error { return hideKubeadm(ctx, s.atControlPlane()) },
	Bites: func(ctx context.Context, s Site) error {
		out, err := s.Run(ctx, s.ControlPlane, "sh", "-c", "kubeadm token create --dry-run >/dev/null 2>&1; echo status $?")
		if err == nil && !strings.Contains(out, "status 127") {
			err = errors.New("it makes a join command: " + strings.TrimSpace(out))
		}
		return err
	},
	Symptom: symptom.KubeBinariesMissing,
	Of:      func(s Site) []string { return []string{s.ControlPlane} },
	Recover: nodeVerb("join"), // another control plane uploads the certificates
	Restore: func(ctx context.Context, s Site) error { return showKubeadm(ctx, s.atControlPlane()) },
}

// atControlPlane is the same site with the healthy control plane as the node.
func (s Site) atControlPlane() Site {
	s.Node = s.ControlPlane
	return s
}
