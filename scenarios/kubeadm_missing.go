package scenarios

import "k8slab/lab/symptom"

var kubeadmMissing = Fault{
	Name:    "kubeadm-missing",
	Story:   "kubeadm is not installed on the machine (enhanced-kubernetes-join)",
	Roles:   everyRole,
	Outside: true,
	Inject:  hideKubeadm,
	Effect:  refuses(symptom.KubeBinariesMissing),
	Alone:   "exit status 127 after 0.1 s",
	Symptom: symptom.KubeBinariesMissing,
	Recover: nodeVerb("join"),
	ByHand:  "a package has to be installed, and nodes have no uplink to fetch it",
	Restore: showKubeadm,
	Join:    &Join{Cause: symptom.KubeBinariesMissing},
}

var (
	hideKubeadm = on("mv", "/usr/bin/kubeadm", "/usr/bin/kubeadm.fault")
	showKubeadm = script(`! test -e /usr/bin/kubeadm.fault || mv /usr/bin/kubeadm.fault /usr/bin/kubeadm`)
)
