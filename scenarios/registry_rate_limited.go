package scenarios

import (
	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

var registryRateLimited = Fault{
	Name:    "registry-rate-limited",
	Story:   "the registry has had too many requests from this address, and says 429 (calico#4918)",
	Lab:     usersPods,
	Roles:   everyRole,
	Symptom: symptom.ImagePullFailure,
	Detail:  symptom.UserPod + string(kube.PullLimited),
	Inject:  answers("429 Too Many Requests", "Retry-After: 60"),
	Effect:  pullFails("429 Too Many Requests"),
	ByHand:  "somebody waits, or names a mirror in hosts.toml",
	Restore: forgetsMirror,
}
