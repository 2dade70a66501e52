package scenarios

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8slab/lab/symptom"
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
	err := r.repair(ctx)
	if err != nil && ctx.Err() == nil {
		err = errors.Join(err, r.followHints(ctx))
	}
	if err != nil && r.ended.Healed == "" && ctx.Err() == nil {
		r.step("labctl up")
		_, upErr := r.target.Labctl(ctx, "up")
		err = errors.Join(err, r.heals(ctx, "labctl up", upErr))
	}
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
			r.hints = append(r.hints, hint{l.Node, l.Left})
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

// hint tells a person what to do about a node, "" for the cluster.
type hint struct{ node, text string }

// followHints does what the findings and the repair tell a person to do, command by command, until the lab is healthy.
func (r *damageRound) followHints(ctx context.Context) error {
	hints := r.hints
	for _, f := range r.failed {
		if f.Rule == "" { // what a site's own rule says is not ours to run
			hints = append(hints, hint{f.Node, f.Hint})
		}
	}
	var did []string
	var errs []error
	for _, h := range hints {
		for _, c := range symptom.Commands(h.text) {
			where := cmp.Or(h.node, "the cluster")
			if slices.Contains(did, c.String()+" on "+where) {
				continue
			}
			did = append(did, c.String()+" on "+where)
			r.step(c.String())
			errs = append(errs, r.target.follow(ctx, h.node, c))
		}
	}
	if did == nil {
		return errors.New("no hint names a command that a person could run")
	}
	return r.heals(ctx, strings.Join(did, ", "), errors.Join(errs...))
}
