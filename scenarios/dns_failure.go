package scenarios

import (
	"context"
	"errors"
	"regexp"

	"k8slab/lab/symptom"
)

var dnsFailure = Fault{
	Name:    "dns-failure",
	Story:   "the join command names the control plane by a name that the worker cannot resolve (control-plane-join-failures)",
	Roles:   workers,
	Alone:   "kubeadm fails after 300 s, with a time-out",
	Outside: true,
	Inject: tries(func(_ context.Context, _ Target, command string) (string, error) {
		if !endpointWord.MatchString(command) {
			return "", errors.New("the join command has no endpoint")
		}
		return endpointWord.ReplaceAllString(command, "kubeadm join control-plane.fault.invalid:$2"), nil
	}),
	Effect:  recorded(symptom.DNSResolutionFailure),
	Symptom: symptom.DNSResolutionFailure,
	Recover: nodeVerb("join"),
}

// endpointWord is the word of a join command that has the address of the cluster.
var endpointWord = regexp.MustCompile(`kubeadm join (\S+):([0-9]+)`)
