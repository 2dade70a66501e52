package scenarios

import (
	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

var registryMirrorDead = Fault{
	Name:    "registry-mirror-dead",
	Story:   "the mirror from which a registry's images come was stopped, and its port refuses connections (containerd#11015)",
	Lab:     usersPods,
	Roles:   everyRole,
	Symptom: symptom.ImagePullFailure,
	Detail:  symptom.UserPod + string(kube.PullClosed),
	Inject:  pullsFromMirror("http", ""),
	Effect:  pullFails("connect: connection refused"),
	ByHand:  "somebody starts the mirror, or takes it out of hosts.toml",
	Restore: forgetsMirror,
}
