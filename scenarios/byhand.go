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

// ended is how a join by hand ended.
type ended struct {
	Joined   bool       `json:"joined"`
	Symptom  symptom.ID `json:"symptom"`
	Evidence string     `json:"evidence"`
	Phase    string     `json:"phase"`
	Killed   bool       `json:"killed"`
}

// spoiling makes of a join command the one that somebody uses.
type spoiling func(ctx context.Context, s Site, command string) (string, error)

// byHand has the node join as its owner would, once: with the command that `labctl join-command` prints, and what spoil makes of it. It
// returns how that ended, which stays in the machine's own record too. The token is deleted afterwards.
func (s Site) byHand(ctx context.Context, spoil spoiling) (ended, error) {
	command, err := s.joinCommand(ctx)
	if err != nil {
		return ended{}, err
	}
	defer s.forgetToken(context.WithoutCancel(ctx), command)
	if spoil != nil {
		if command, err = spoil(ctx, s, command); err != nil {
			return ended{}, err
		}
	}
	return s.joinWith(ctx, s.Node, command)
}

// joinCommand is what somebody joins the node with.
func (s Site) joinCommand(ctx context.Context) (string, error) {
	args := []string{"join-command", "-o", "json"}
	if s.role(s.Node) == config.ControlPlane {
		args = append(args, "--control-plane")
	}
	out, err := s.Labctl(ctx, args...)
	var made struct{ Command string }
	if err == nil {
		err = json.Unmarshal([]byte(out), &made)
	}
	return made.Command, err
}

// joinWith has a node join with the command.
func (s Site) joinWith(ctx context.Context, node, command string) (ended, error) {
	out, err := s.Run(ctx, node, "sh", "-c", `printf %s "$1" | labnode join --command-file - --attempts 1 -o json`, "sh", command)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var last struct{ Outcome *ended }
	if json.Unmarshal([]byte(lines[len(lines)-1]), &last) != nil || last.Outcome == nil {
		return ended{}, fmt.Errorf("%s: labnode join told no outcome: %w", node, cmp.Or(err, errors.New("it said nothing")))
	}
	return *last.Outcome, nil
}

var tokenFlag = regexp.MustCompile(`--token ([a-z0-9]{6})\.\S+`)

// forgetToken makes a join command worthless. Its token would expire anyway.
func (s Site) forgetToken(ctx context.Context, command string) {
	if token := tokenFlag.FindStringSubmatch(command); token != nil {
		_, _ = s.kubectl(ctx, "delete", "secret", "--namespace", "kube-system", "--ignore-not-found", "bootstrap-token-"+token[1])
	}
}

// tries joins by hand, and leaves what comes of it in the machine's record.
func tries(spoil spoiling) func(context.Context, Site) error {
	return func(ctx context.Context, s Site) error {
		_, err := s.byHand(ctx, spoil)
		return err
	}
}

// recorded wants the last join on the node to have ended with the cause, by the machine's own record.
func recorded(cause symptom.ID) func(context.Context, Site) error {
	return func(ctx context.Context, s Site) error {
		o, err := s.lastJoin(ctx, s.Node)
		if err != nil {
			return err
		}
		return o.expect(cause)
	}
}

// lastJoin is how the last join on a node ended.
func (s Site) lastJoin(ctx context.Context, node string) (ended, error) {
	out, err := s.Run(ctx, node, "labnode", "facts")
	var facts struct{ Outcome *ended }
	if err == nil {
		err = json.Unmarshal([]byte(out), &facts)
	}
	if err == nil && facts.Outcome == nil {
		err = errors.New("it has no record of a join that ended")
	}
	if err != nil {
		return ended{}, fmt.Errorf("%s: %w", node, err)
	}
	return *facts.Outcome, nil
}

// refuses wants a join by hand to end with the cause.
func refuses(cause symptom.ID) func(context.Context, Site) error {
	return func(ctx context.Context, s Site) error {
		o, err := s.byHand(ctx, nil)
		if err != nil {
			return err
		}
		return o.expect(cause)
	}
}

// expect is nil when the join ended with the cause. One that succeeded would find a healthy member next time.
func (o ended) expect(cause symptom.ID) error {
	switch {
	case o.Joined:
		return wait.Hopeless(errors.New("the join succeeded"))
	case o.Symptom != cause:
		return &misnamedError{o, cause}
	}
	return nil
}

// misnamedError is a join that failed as it should and says another cause: the product's failure, not the injector's.
type misnamedError struct {
	ended  ended
	wanted symptom.ID
}

func (e *misnamedError) Error() string {
	return fmt.Sprintf("the join ended with %q (%s), not %q", e.ended.Symptom, e.ended.Evidence, e.wanted)
}

// killed wants a join by hand to lose its kubeadm.
func killed(ctx context.Context, s Site) error {
	o, err := s.byHand(ctx, nil)
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
