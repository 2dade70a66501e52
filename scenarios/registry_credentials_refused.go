package scenarios

import (
	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

var registryCredentialsRefused = Fault{
	Name:    "registry-credentials-refused",
	Story:   "the registry's password was changed, and the pod's pull secret has the old one: 401 (containerd#4862)",
	Lab:     usersPods,
	Roles:   everyRole,
	Symptom: symptom.ImagePullFailure,
	Detail:  symptom.UserPod + string(kube.PullRefused),
	Inject:  answers("401 Unauthorized", `WWW-Authenticate: Basic realm="fault"`),
	Effect:  pullFails("401 Unauthorized"),
	ByHand:  "somebody gives the pod a pull secret with the right password",
	Restore: forgetsMirror,
}
