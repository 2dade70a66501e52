package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var wrongCAHash = Fault{
	Name:    "wrong-ca-hash",
	Story:   "the CA that the cluster shows is not the one whose hash the join pins: after a change of the CA, or at a wrong endpoint (enhanced-kubernetes-join)",
	Roles:   workers,
	Outside: true,
	Inject: func(ctx context.Context, t Target) error {
		return t.shell(ctx, t.ControlPlane, showCA, "/etc/kubernetes/pki/front-proxy-ca.crt")
	},
	Effect:  refuses(symptom.CACertHashMismatch),
	Alone:   "kubeadm refuses after 0.5 s",
	Symptom: symptom.CACertHashMismatch,
	Recover: nodeVerb("join"),
	Remedy:  symptom.RenewClusterInfo,
	Restore: func(ctx context.Context, t Target) error {
		return t.shell(ctx, t.ControlPlane, showCA, "/etc/kubernetes/pki/ca.crt")
	},
}

// showCA puts the CA of the file into the ConfigMap cluster-info, which a joining machine reads.
const showCA = `
	export KUBECONFIG=/etc/kubernetes/admin.conf
	ca=$(base64 --wrap 0 "$1")
	kubectl --namespace kube-public get configmap cluster-info --output yaml |
		sed "s|certificate-authority-data: .*|certificate-authority-data: $ca|; /resourceVersion:/d" | kubectl replace -f -`
