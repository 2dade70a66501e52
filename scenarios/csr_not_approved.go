package scenarios

import (
	"context"
	"fmt"
	"regexp"

	"k8slab/lab/symptom"
)

var csrNotApproved = Fault{
	Name:    "csr-not-approved",
	Story:   "the binding that has kubelets' certificate requests approved was deleted, and a join waits for a certificate (kubeadm#747)",
	Roles:   workers,
	Alone:   "kubeadm fails after 301 s, with a time-out",
	Outside: true,
	Inject:  after(approvalBinding.make, beginJoin),
	Effect: func(ctx context.Context, t Target) error {
		out, err := t.kubectl(ctx, "get", "csr", "--output=jsonpath="+
			`{range .items[*]}{.spec.username} {.status.conditions[*].type}{"\n"}{end}`)
		if err == nil && !unanswered.MatchString(out) {
			err = fmt.Errorf("no certificate request of a joining node waits: %q", out)
		}
		return err
	},
	Symptom: symptom.CSRNotApproved,
	Of:      func(t Target) []string { return []string{t.Node, ""} },
	Recover: nodeVerb("join"),
	May:     []Change{Others},
	Restore: each(approvalBinding.undo, forgetJoinByHand),
}

var approvalBinding = object{name: "clusterrolebinding/kubeadm:node-autoapprove-bootstrap"}

// unanswered is a joining kubelet's request that nobody approved or denied.
var unanswered = regexp.MustCompile(`(?m)^system:bootstrap:\S+ *$`)
