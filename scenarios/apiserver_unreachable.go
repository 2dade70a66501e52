package scenarios

import (
	"context"
	"errors"

	"k8slab/lab/symptom"
)

var apiserverUnreachable = Fault{
	Name:    "apiserver-unreachable",
	Story:   "a worker has no way to the API server's address, and its join hangs (worker-join-hanging)",
	Roles:   workers,
	Outside: true,
	Inject: func(ctx context.Context, t Target) error {
		command, err := t.joinCommand(ctx)
		if err != nil {
			return err
		}
		t.forgetToken(ctx, command)
		endpoint := endpointWord.FindStringSubmatch(command)
		if endpoint == nil {
			return errors.New("the join command has no endpoint")
		}
		return t.shell(ctx, t.Node, `getent ahostsv4 "$1" | while read -r address _; do ip route replace unreachable "$address"; done`, endpoint[1])
	},
	Effect:  refuses(symptom.APIServerUnreachable),
	Alone:   "kubeadm fails after 304 s, with a time-out",
	Symptom: symptom.APIServerUnreachable,
	Recover: nodeVerb("join"),
	Remedy:  symptom.DeleteRoute,
	Restore: on("ip", "route", "flush", "type", "unreachable"),
}
