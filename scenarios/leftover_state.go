package scenarios

import (
	"context"
	"errors"
	"strings"

	"k8slab/lab/symptom"
)

var leftoverState = Fault{
	Name:    "leftover-state",
	Story:   "files of a join that failed half-way make kubeadm's preflight refuse the next one (control-plane-join-failures)",
	Roles:   everyRole,
	Alone:   "kubeadm refuses after 0.5 s",
	Outside: true,
	Symptom: symptom.LeftoverState,
	Inject: script(`
		mkdir -p /etc/kubernetes/manifests /etc/kubernetes/pki
		touch /etc/kubernetes/bootstrap-kubelet.conf /etc/kubernetes/manifests/kube-apiserver.yaml
		echo stale > /etc/kubernetes/pki/sa.pub`),
	// labnode would remove them; kubeadm itself refuses.
	Effect: func(ctx context.Context, t Target) error {
		out, err := t.Run(ctx, t.Node, "sh", "-c", `kubeadm join phase preflight 127.0.0.1:6443 --token abcdef.0123456789abcdef \
			--discovery-token-unsafe-skip-ca-verification --ignore-preflight-errors=SystemVerification,Mem,NumCPU 2>&1; true`)
		if err == nil && !strings.Contains(out, "[ERROR FileAvailable--etc-kubernetes-bootstrap-kubelet.conf]") {
			err = errors.New("kubeadm's preflight does not mind: " + strings.TrimSpace(out))
		}
		return err
	},
	Recover: nodeVerb("join"),
	Join:    &Join{Cause: symptom.LeftoverState},
}
