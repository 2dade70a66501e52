package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// repairAll is the repair that goes as far as labctl may go alone.
var repairAll = []string{"repair", "--up-to", "recreate", "-o", "json"}

// getOver has the lab get over the damage: by a repair, by what a person is told to do, and by `labctl up`, in this order.
func (r *damageRound) getOver(ctx context.Context) error {
	if r.ended.Named == Harmless {
		return nil
	}
	begun := time.Now()
	defer func() { r.ended.ToHeal = time.Since(begun).Seconds() }()
	said := slices.Clone(r.ended.Said)
	err := r.repair(ctx)
	if err != nil && ctx.Err() == nil {
		err = errors.Join(err, r.followHints(ctx))
	}
	if err != nil && r.ended.Healed == "" && ctx.Err() == nil {
		r.step("labctl up")
		_, upErr := r.target.Labctl(ctx, "up")
		err = errors.Join(err, r.heals(ctx, "labctl up", upErr))
	}
	r.ended.Said = said // of the damage, and not of what was left of it
	if r.ended.Healed == Healed {
		return nil
	}
	r.ended.Healed = DeadEnd
	return err
}

// repair repairs, and keeps what it leaves to a person.
func (r *damageRound) repair(ctx context.Context) error {
	r.step("labctl repair")
	out, err := r.target.Labctl(ctx, repairAll...)
	var left []struct{ Node, Left string }
	if json.Unmarshal([]byte(out), &left) == nil {
		for _, l := range left {
			r.hints = append(r.hints, hint{l.Node, l.Left, l.Left})
		}
	}
	return r.heals(ctx, "labctl "+strings.Join(repairAll[:3], " "), err)
}

// heals waits for a healthy lab after a command that ended with the error. It is not long: repair and up have waited.
func (r *damageRound) heals(ctx context.Context, command string, err error) error {
	unhealthy := r.becomesHealthy(ctx, goneBudget)
	if unhealthy != nil {
		return errors.Join(err, fmt.Errorf("after %s: %w", command, unhealthy))
	}
	r.ended.Healed, r.ended.By = Healed, command
	return nil
}

// hint tells a person what to do. evidence is what placeholders in it may stand for.
type hint struct{ node, text, evidence string }

// followHints does what the findings and the repair tell a person to do, command by command, until the lab is healthy.
func (r *damageRound) followHints(ctx context.Context) error {
	hints := r.hints
	for _, f := range r.failed {
		evidence := f.Detail
		for _, e := range f.Evidence {
			evidence += "\n" + e.Text
		}
		hints = append(hints, hint{f.Node, f.Hint, evidence})
	}
	var did []string
	var errs []error
	for _, h := range hints {
		for _, argv := range h.commands(r.damage.name()) {
			command := strings.Join(argv, " ")
			if slices.Contains(did, command+" on "+h.node) {
				continue
			}
			did = append(did, command+" on "+h.node)
			r.step(command)
			errs = append(errs, r.follow(ctx, h.node, argv))
		}
	}
	if did == nil {
		return errors.New("no hint names a command that a person could run")
	}
	return r.heals(ctx, strings.Join(did, ", "), errors.Join(errs...))
}

func (r *damageRound) follow(ctx context.Context, node string, argv []string) (err error) {
	switch argv[0] {
	case "labctl":
		_, err = r.target.Labctl(ctx, argv[1:]...)
	case "kubectl":
		_, err = r.target.kubectl(ctx, argv[1:]...)
	default:
		_, err = r.target.Run(ctx, node, argv...)
	}
	return err
}

// remedies are the commands of hints that are followed, and their verbs. Others only look, or need a person's judgement.
var remedies = map[string][]string{
	"labctl":    {"up", "repair", "join", "rejoin", "addons", "image"},
	"kubectl":   {"delete", "apply", "patch", "uncordon", "rollout"},
	"systemctl": {"unmask", "start", "restart", "enable", "daemon-reload"},
	"nft":       {"delete", "flush"},
}

var (
	quotedCommand = regexp.MustCompile("`([^`]+)`")
	plainWord     = regexp.MustCompile(`^[\w@%+=:,./-]+$`) // nothing that a shell would read
	placeholder   = regexp.MustCompile(`^[A-Z][A-Z-]+$`)
)

// commands are those in the hint that can be run as they are written. NODE stands for its node, and NAME for the damaged thing if the
// evidence names it, as a person would read them.
func (h hint) commands(thing string) (all [][]string) {
	for _, quoted := range quotedCommand.FindAllStringSubmatch(h.text, -1) {
		argv := strings.Fields(quoted[1])
		if len(argv) < 2 || !slices.Contains(remedies[argv[0]], argv[1]) {
			continue
		}
		for i, word := range argv {
			switch {
			case word == "NODE" && h.node != "":
				argv[i] = h.node
			case word == "NAME" && mentions(h.evidence, thing):
				argv[i] = thing
			case !plainWord.MatchString(word) || placeholder.MatchString(word):
				argv = nil
			}
			if argv == nil {
				break
			}
		}
		onNode := argv != nil && argv[0] != "labctl" && argv[0] != "kubectl"
		if argv != nil && (!onNode || h.node != "") {
			all = append(all, argv)
		}
	}
	return all
}
