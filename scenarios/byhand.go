package scenarios

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8slab/config"
	"k8slab/lab/symptom"
	"k8slab/lab/wait"
)

// labnode is how a command on a node names it. A Driver brings it there, where it is not part of the machine.
const labnode = "/usr/bin/labnode"

// joinOutcome is how a join by hand ended.
type joinOutcome struct {
	Joined   bool       `json:"joined"`
	Symptom  symptom.ID `json:"symptom"`
	Evidence string     `json:"evidence"`
	Phase    string     `json:"phase"`
	Killed   bool       `json:"killed"`
}

// commandEdit changes a join command, as somebody who makes a mistake does.
type commandEdit func(ctx context.Context, t Target, command string) (string, error)

// byHand joins the node once, as its owner would: with the command that `labctl join-command` prints, changed by edit. It returns the outcome,
// which labnode also records on the machine. The token is deleted afterwards.
func (t Target) byHand(ctx context.Context, edit commandEdit) (joinOutcome, error) {
	command, err := t.joinCommand(ctx)
	if err != nil {
		return joinOutcome{}, err
	}
	defer t.forgetToken(context.WithoutCancel(ctx), command)
	if edit != nil {
		if command, err = edit(ctx, t, command); err != nil {
			return joinOutcome{}, err
		}
	}
	if command, err = t.named(ctx, t.Node, command); err != nil {
		return joinOutcome{}, err
	}
	return t.joinWith(ctx, t.Node, command)
}

// named is the join command with the name of the Node, where the machine has another: its owner knows. A machine without a name has none to
// compare with.
func (t Target) named(ctx context.Context, node, command string) (string, error) {
	own, err := t.Run(ctx, node, "hostname")
	if own = strings.TrimSpace(own); err != nil || own == node || own == noName {
		return command, err
	}
	return command + " --node-name " + node, nil
}

// joinCommand makes a join command for the node.
func (t Target) joinCommand(ctx context.Context) (string, error) {
	args := []string{"join-command", "-o", "json"}
	if t.role(t.Node) == config.ControlPlane {
		args = append(args, "--control-plane")
	}
	out, err := t.Labctl(ctx, args...)
	var made struct{ Command string }
	if err == nil {
		err = json.Unmarshal([]byte(out), &made)
	}
	return made.Command, err
}

// joinWith joins a node with the command.
func (t Target) joinWith(ctx context.Context, node, command string) (joinOutcome, error) {
	out, err := t.Run(ctx, node, "sh", "-c", `printf %s "$1" | "$2" join --command-file - --attempts 1 -o json`, "sh", command, labnode)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var last struct{ Outcome *joinOutcome }
	if json.Unmarshal([]byte(lines[len(lines)-1]), &last) != nil || last.Outcome == nil {
		return joinOutcome{}, fmt.Errorf("%s: labnode join told no outcome: %w", node, cmp.Or(err, errors.New("it said nothing")))
	}
	return *last.Outcome, nil
}

var tokenFlag = regexp.MustCompile(`--token ([a-z0-9]{6})\.\S+`)

// forgetToken deletes the token of a join command. An error is no harm: the token expires.
func (t Target) forgetToken(ctx context.Context, command string) {
	if token := tokenFlag.FindStringSubmatch(command); token != nil {
		_, _ = t.kubectl(ctx, "delete", "secret", "--namespace", "kube-system", "--ignore-not-found", "bootstrap-token-"+token[1])
	}
}

// tries joins by hand; the outcome stays in the machine's record.
func tries(edit commandEdit) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		_, err := t.byHand(ctx, edit)
		return err
	}
}

// breaks is an edit that leaves the command as it is. It breaks something after the command was made: join-command restores what joins
// need.
func breaks(change func(context.Context, Target) error) commandEdit {
	return func(ctx context.Context, t Target, command string) (string, error) { return command, change(ctx, t) }
}

// recorded returns nil if the machine's record says that the last join failed with the cause.
func recorded(cause symptom.ID) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		o, err := t.lastJoin(ctx, t.Node)
		if err != nil {
			return err
		}
		return o.expect(cause)
	}
}

// lastJoin is how the last join on a node ended.
func (t Target) lastJoin(ctx context.Context, node string) (joinOutcome, error) {
	out, err := t.Run(ctx, node, labnode, "facts")
	var facts struct{ Outcome *joinOutcome }
	if err == nil {
		err = json.Unmarshal([]byte(out), &facts)
	}
	if err == nil && facts.Outcome == nil {
		err = errors.New("it has no record of a join that ended")
	}
	if err != nil {
		return joinOutcome{}, fmt.Errorf("%s: %w", node, err)
	}
	return *facts.Outcome, nil
}

// refuses joins by hand, and returns nil if that fails with the cause.
func refuses(cause symptom.ID) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		o, err := t.byHand(ctx, nil)
		if err != nil {
			return err
		}
		return o.expect(cause)
	}
}

// expect returns nil if the join failed with the cause. There is no second try after a success: the node is a member then.
func (o joinOutcome) expect(cause symptom.ID) error {
	switch {
	case o.Joined:
		return wait.Hopeless(errors.New("the join succeeded"))
	case o.Symptom != cause:
		return &misnamedError{o, cause}
	}
	return nil
}

// misnamedError is a join that failed as it should but names another cause, which is a failure of labctl and not of the injection.
type misnamedError struct {
	outcome joinOutcome
	wanted  symptom.ID
}

func (e *misnamedError) Error() string {
	return fmt.Sprintf("the join ended with %q (%s), not %q", e.outcome.Symptom, e.outcome.Evidence, e.wanted)
}

// killed joins by hand, and returns nil if kubeadm was killed in it.
func killed(ctx context.Context, t Target) error {
	o, err := t.byHand(ctx, nil)
	switch {
	case err != nil:
		return err
	case o.Joined:
		return wait.Hopeless(errors.New("the join succeeded"))
	case !o.Killed:
		return fmt.Errorf("the join ended in %s: %s", o.Phase, o.Evidence)
	}
	return nil
}
