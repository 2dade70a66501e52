package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var tokenExpired = Fault{
	Name:    "token-expired",
	Story:   "a worker joins with yesterday's command, whose bootstrap token has expired (enhanced-kubernetes-join)",
	Roles:   workers,
	Outside: true,
	Inject: tries(func(ctx context.Context, t Target, command string) (string, error) {
		t.forgetToken(ctx, command)
		return command, nil
	}),
	Effect:  recorded(symptom.TokenExpiredOrInvalid),
	Alone:   "kubeadm fails after 301 s, with a time-out",
	Symptom: symptom.TokenExpiredOrInvalid,
	Recover: nodeVerb("join"),
}
