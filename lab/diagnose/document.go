package diagnose

import (
	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

// CauseOfDocument is what a wrong document of the cluster's is found as.
func CauseOfDocument(d kube.WrongDocument) symptom.ID {
	switch {
	case d.Path == "kubernetesVersion":
		return symptom.VersionSkew
	case d.Path == "controlPlaneEndpoint":
		return symptom.ControlPlaneEndpointMissing
	case d.Name == "kube-proxy":
		return symptom.KubeProxyCrash
	case d.Name == "coredns":
		return symptom.DNSResolutionFailure
	}
	return symptom.JoinConfigMissing
}
