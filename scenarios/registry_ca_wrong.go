package scenarios

import (
	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

var registryCAWrong = Fault{
	Name:    "registry-ca-wrong",
	Story:   "the certificate of the mirror was signed by an authority that the node does not know (k3s#1148)",
	Lab:     usersPods,
	Roles:   everyRole,
	Symptom: symptom.ImagePullFailure,
	Detail:  symptom.UserPod + string(kube.PullUntrusted),
	Inject:  pullsFromMirror("https", showsOwnCertificate),
	Effect:  pullFails("x509: certificate signed by unknown authority"),
	ByHand:  "somebody names the authority in hosts.toml, or another mirror",
	Restore: forgetsMirror,
}
