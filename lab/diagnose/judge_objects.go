package diagnose

import (
	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

// rights judges what the cluster's own parts may not do any more.
func (j *judgement) rights() {
	if j.f.API.Ready != "" { // its rights come with its roles
		return
	}
	for _, r := range j.f.API.Rights {
		j.find(symptom.RBACChanged, "", "API", r.What).Repairable = true
	}
}

// documents judges the cluster's own documents that do not say what they must.
func (j *judgement) documents() {
	for _, d := range j.f.API.Documents {
		j.find(CauseOfDocument(d), "", "API", d.String()).Repairable = true
	}
}

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
