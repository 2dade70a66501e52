package scenarios

import "k8slab/lab/symptom"

var controlPlaneEndpointRemoved = Fault{
	Name:    "control-plane-endpoint-removed",
	Story:   "kubeadm's configuration of the cluster has no stable endpoint, and kubeadm takes no further control plane (kubeadm#1331)",
	Roles:   controlPlane,
	Alone:   "kubeadm refuses",
	Outside: true,
	Inject:  endpointLine.make,
	Effect:  refuses(symptom.ControlPlaneEndpointMissing),
	Symptom: symptom.ControlPlaneEndpointMissing,
	Of:      hereOrCluster,
	Recover: nodeVerb("join"),
	ByHand:  "somebody edits kubeadm's configuration of the cluster",
	May:     []Change{Others},
	Restore: endpointLine.undo,
}

var endpointLine = object{namespace: "kube-system", name: "configmap/kubeadm-config", how: "/^ *controlPlaneEndpoint: /d"}
