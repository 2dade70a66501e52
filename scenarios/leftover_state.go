package scenarios

import "k8slab/lab/symptom"

var leftoverState = Fault{
	Name:    "leftover-state",
	Story:   "files of a join that failed half-way make kubeadm's preflight refuse the next one (control-plane-join-failures)",
	Roles:   everyRole,
	Symptom: symptom.LeftoverState,
	Inject: script(`
		mkdir -p /etc/kubernetes/manifests /etc/kubernetes/pki
		touch /etc/kubernetes/bootstrap-kubelet.conf /etc/kubernetes/manifests/kube-apiserver.yaml
		echo stale > /etc/kubernetes/pki/sa.pub`),
	Join: &Join{Cause: symptom.LeftoverState},
}
