package scenarios

import "k8slab/lab/symptom"

var webhookRejectsNodes = Fault{
	Name:    "webhook-rejects-nodes",
	Story:   "a policy webhook that does not answer keeps new Nodes out: the machine has its certificate, and its kubelet never registers (gatekeeper#786)",
	Roles:   workers,
	Alone:   "kubeadm waits for the Node, and fails with a time-out",
	Outside: true,
	Symptom: symptom.AdmissionRejects,
	Of:      hereOrCluster,
	Inject:  adminApplies(deadWebhook("nodes")),
	Effect:  rejected("Node", "spec: {}"),
	Recover: nodeVerb("join"),
	Remedy:  symptom.DeleteObject,
	May:     []Change{Others},
	Restore: deletesWebhook,
}
