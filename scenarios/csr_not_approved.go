package scenarios

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8slab/lab/symptom"
)

var csrNotApproved = Fault{
	Name:    "csr-not-approved",
	Story:   "the controller that approves kubelets' certificate requests was switched off, and a join waits for its certificate (kubeadm#747)",
	Roles:   workers,
	Alone:   "kubeadm fails after 301 s, with a time-out",
	Outside: true,
	Inject:  after(noApprover.everywhere, controllerManagersWith(noApproverFlag), beginJoin),
	Effect:  requestWaits,
	Symptom: symptom.CSRNotApproved,
	Of:      hereOrCluster,
	Recover: [][]string{{"join", Node}, {"repair"}},
	May:     []Change{Others},
	Restore: each(noApprover.undoEverywhere, forgetJoinByHand),
}

const noApproverFlag = ",-certificatesigningrequest-approving-controller"

var noApprover = edit{
	path: controllerManagerGone.path,
	how:  `sed --in-place 's/--controllers=.*/&` + noApproverFlag + `/' "$1"`,
}

// requestWaits returns nil if a joining node's certificate request has waited for 20 s: an approval takes one.
func requestWaits(ctx context.Context, t Target) error {
	out, err := t.kubectl(ctx, "get", "csr", "--output=jsonpath="+
		`{range .items[*]}{.spec.username} {.metadata.creationTimestamp} {.status.conditions[*].type}{"\n"}{end}`)
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) != 2 || !strings.HasPrefix(fields[0], "system:bootstrap:") {
			continue
		}
		if made, err := time.Parse(time.RFC3339, fields[1]); err == nil && time.Since(made) > 20*time.Second {
			return nil
		}
	}
	return fmt.Errorf("no certificate request of a joining node has waited for long: %q", out)
}

// controllerManagersWith waits until all controller managers run with the words among their flags: one without them could still lead.
func controllerManagersWith(words string) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		for _, m := range t.controlPlanes() {
			err := t.await(ctx, "the controller manager of "+m.Name+" to start anew", 2*time.Minute, time.Second, func(ctx context.Context) error {
				return t.shell(ctx, m.Name, `
					all=$(pgrep --exact kube-controller)
					for pid in $all; do
						grep --quiet --fixed-strings -e "$1" "/proc/$pid/cmdline"
					done`, words)
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
}
