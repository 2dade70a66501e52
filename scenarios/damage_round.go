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

// Times of a round of damage.
const (
	quietBudget  = 15 * time.Second // until the diagnosis names damage that shows at once
	provenBudget = 90 * time.Second // until a node whose services and pods were made anew is healthy again
	stillHealthy = 10 * time.Second // how long a lab must be healthy to count as unharmed
)

// Naming says what the diagnosis said of damage.
type Naming string

// What the diagnosis says. Harmless is damage that leaves the lab healthy, also after a restart of what could need the damaged thing.
const (
	Named    Naming = "named"
	Misnamed Naming = "misnamed" // a finding fails, and none points at the damage
	Silent   Naming = "silent"   // the lab is not healthy, and no finding fails
	Harmless Naming = "harmless"
)

// Healing says how the lab got over damage.
type Healing string

// How the lab got over damage; "" after damage that was harmless or could not be made.
const (
	Healed  Healing = "healed"
	DeadEnd Healing = "dead-end" // no command of labctl led to a healthy lab
	Lost    Healing = "lost"     // the lab is healthy, but something was lost that had to stay
)

// Damaged is how a round of damage ended.
type Damaged struct {
	Round int `json:"round"`
	Damage
	Components []Component `json:"components"` // of the damaged thing
	Began      time.Time   `json:"began"`
	Class      Class       `json:"class"`
	Named      Naming      `json:"named,omitempty"`
	Healed     Healing     `json:"healed,omitempty"`
	By         string      `json:"by,omitempty"`   // the commands after which the lab was healthy
	Said       []string    `json:"said,omitempty"` // findings that failed when the diagnosis was last asked to name the damage
	Reason     string      `json:"reason,omitempty"`
	Restored   bool        `json:"restored"` // the lab is as before: the next round can begin
	ToName     float64     `json:"to_name"`  // seconds from the damage to the finding that names it
	ToHeal     float64     `json:"to_heal"`  // seconds from the first repair to a healthy lab
	Seconds    float64     `json:"seconds"`
}

// Result is the round as an experiment, for reports.
func (d Damaged) Result() Result {
	r := Result{Fault: d.String(), Node: d.where(), Began: d.Began, Class: d.Class, Reason: d.Reason, ToCause: d.ToName, ToRecover: d.ToHeal,
		Seconds: d.Seconds}
	if r.Reason == "" && d.Missed() {
		r.Reason = fmt.Sprintf("%s: %s", d.Named, strings.Join(d.Said, "; "))
	}
	return r
}

// damageRound is a round that runs.
type damageRound struct {
	experiment
	damage Damage
	ended  Damaged
	failed []symptom.Finding // when the diagnosis was last asked
	hints  []hint            // that the repair gave
}

// RunDamage draws the nth round of the seed and runs it: a healthy lab, the damage, the diagnosis, the repair, and the proof that the lab
// is healthy and lost nothing. Whatever labctl could not put back, RunDamage undoes.
func RunDamage(ctx context.Context, d Driver, seed uint64, n int, o Options) Damaged {
	r := &damageRound{experiment: experiment{options: o}, ended: Damaged{Round: n, Began: time.Now().UTC()}}
	err := r.run(ctx, d, seed, n)
	if err != nil {
		r.ended.Reason = err.Error()
	}
	r.ended.Class = r.class(err)
	r.ended.Before = "" // it may be long
	r.ended.Seconds = time.Since(r.ended.Began).Seconds()
	return r.ended
}

// class is of the result without an own class: whatever was damaged must be named and healed, unless that harmed nothing.
func (r *damageRound) class(err error) Class {
	switch {
	case errors.Is(err, errNotApplicable):
		return NotApplicable
	case r.ended.Named == "":
		return SetupFailed
	case r.ended.Restored && (r.ended.Named == Harmless || r.ended.Named == Named && r.ended.Healed == Healed):
		return Passed
	}
	return Failed
}

func (r *damageRound) run(ctx context.Context, d Driver, seed uint64, n int) error {
	r.step("healthy before")
	var err error
	r.damage, r.target, err = drawDamage(ctx, d, seed, n)
	r.ended.Damage, r.ended.Components = r.damage, r.damage.Components()
	if err != nil {
		r.ended.Restored = errors.Is(err, errNotApplicable)
		return err
	}
	r.target.patience = r.options.Patience
	// What a repair may have to do to the damaged node. Nothing else may change.
	r.faults = []placed{{Fault{Name: "damage", May: []Change{Identity, Boot, Disk}}, r.target}}
	r.result = Result{Fault: "damage", Node: r.damage.Node, Began: r.ended.Began}
	if err := r.verdict(ctx); err != nil {
		return fmt.Errorf("the lab is not healthy before the damage: %w", err)
	}
	before, err := r.remember(ctx)
	if err != nil {
		return err
	}
	writes := r.watchWrites(ctx)
	r.step(r.damage.String())
	if err = r.damage.make(ctx, r.target, r.recordDamage); err == nil {
		r.name(ctx)
		err = r.getOver(ctx)
	}
	writesErr := writes()
	if r.ended.Healed == Healed {
		if lost := errors.Join(r.changed(ctx, before), writesErr); lost != nil {
			r.ended.Healed, err = Lost, lost
		}
	}
	return errors.Join(err, r.clear(ctx))
}

// recordDamage keeps the damage in the record, for the case that the soak is killed.
func (r *damageRound) recordDamage(d Damage) error {
	i := Injected{Fault: "damage", Node: d.Node, Time: time.Now().UTC().Round(0), Experiment: true, Damage: d}
	r.written = append(r.written, i)
	return r.options.Record.Add(i)
}

// verdict returns nil if the lab is healthy: status says so, and no finding fails.
func (r *damageRound) verdict(ctx context.Context) error {
	err := r.ask(ctx)
	if err != nil {
		return err
	}
	if len(r.failed) > 0 {
		return fmt.Errorf("diagnose: %s", strings.Join(r.said(), "; "))
	}
	return healthy(ctx, r.target)
}

// ask asks the diagnosis which findings fail.
func (r *damageRound) ask(ctx context.Context) error {
	r.failed = nil
	out, err := r.target.Labctl(ctx, "diagnose", "-o", "json") // exit status 1 says that there is something
	var report struct{ Findings []symptom.Finding }
	if unread := json.Unmarshal([]byte(out), &report); unread != nil {
		return errors.Join(err, unread)
	}
	r.failed = slices.DeleteFunc(report.Findings, func(f symptom.Finding) bool { return f.Level != symptom.Fail })
	return nil
}

// said are the findings that failed when the diagnosis was last asked.
func (r *damageRound) said() (all []string) {
	for _, f := range r.failed {
		one := string(f.Symptom) + " on " + f.Node
		if f.Node == "" {
			one = string(f.Symptom)
		}
		if len(f.Evidence) > 0 {
			one += ": " + f.Evidence[0].Text
		}
		all = append(all, one)
	}
	return all
}

// name has the diagnosis name the damage. Damage that does not show is brought to light: what could need the damaged thing starts again.
func (r *damageRound) name(ctx context.Context) {
	r.step("diagnose")
	begun := time.Now()
	defer func() { r.ended.ToName, r.ended.Said = time.Since(begun).Seconds(), append(r.ended.Said, r.said()...) }()
	if r.ended.Named = Named; r.pointed(ctx, quietBudget) {
		return
	}
	if r.verdict(ctx) == nil {
		r.step("bring it to light")
		r.provoke(ctx)
		if r.staysHealthy(ctx) {
			r.ended.Named = Harmless
			return
		}
	}
	if r.pointed(ctx, nameBudget) {
		return
	}
	switch err := r.verdict(ctx); {
	case err == nil:
		r.ended.Named = Harmless // it passed by itself
	case len(r.failed) > 0:
		r.ended.Named = Misnamed
	default:
		r.ended.Named = Silent
		r.ended.Said = []string{"no finding, but: " + err.Error()}
	}
	if r.ended.Named != Harmless { // a repair would take away what can explain it
		r.keep(ctx, "unnamed")
	}
}

// keep saves the evidence of the round.
func (r *damageRound) keep(ctx context.Context, of string) {
	r.saveEvidence(ctx, fmt.Sprintf("damage-%d-%s-%s", r.ended.Round, cmp.Or(r.damage.Node, "cluster"), of))
}

// pointed waits until a finding points at the damage.
func (r *damageRound) pointed(ctx context.Context, budget time.Duration) bool {
	return r.target.await(ctx, "a finding that points at the damage", budget, time.Second, func(ctx context.Context) error {
		if err := r.ask(ctx); err != nil {
			return err
		}
		if !slices.ContainsFunc(r.failed, r.damage.Names) {
			return errors.New("none does")
		}
		return nil
	}) == nil
}

// provoke starts again what could need the damaged thing: kubelet, the runtime and all pods of the node, or the probes on all nodes.
func (r *damageRound) provoke(ctx context.Context) {
	if r.damage.Node == "" {
		_, _ = r.target.kubectl(ctx, probeNamespace, "delete", "pod", probePods, "--wait=false")
		return
	}
	// Errors are what the damage brings about, and show in the lab.
	_ = r.target.shell(ctx, r.target.Node, `
		for unit in containerd.service kubelet.service; do
			test "$unit" = "$1" || systemctl restart "$unit" || true
		done
		crictl --timeout 20s pods --quiet | xargs --no-run-if-empty crictl --timeout 60s rmp --force || true`, r.damage.What)
}

// staysHealthy waits until the lab has been healthy for some time.
func (r *damageRound) staysHealthy(ctx context.Context) bool {
	var since time.Time
	return r.target.await(ctx, "a lab that stays healthy", provenBudget, time.Second, func(ctx context.Context) error {
		if err := r.verdict(ctx); err != nil {
			since = time.Time{}
			return err
		}
		if since.IsZero() {
			since = time.Now()
		}
		if time.Since(since) < stillHealthy {
			return errors.New("it has been healthy for a moment only")
		}
		return nil
	}) == nil
}

// becomesHealthy waits for a healthy lab.
func (r *damageRound) becomesHealthy(ctx context.Context, budget time.Duration) error {
	return r.target.await(ctx, "a healthy lab", budget, time.Second, r.verdict)
}

// clear undoes what is left of the damage, and makes the lab healthy for the next round.
func (r *damageRound) clear(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil // the damage stays in the record
	}
	mended := r.ended.Named == Harmless || r.ended.Healed == Healed
	if !mended {
		r.keep(ctx, "unhealed")
	}
	r.step("undo")
	err := r.damage.undo(ctx, r.target, !mended)
	if !mended {
		err = errors.Join(err, BringBack(ctx, r.target))
	}
	if err == nil {
		err = r.becomesHealthy(ctx, healthyBudget)
	}
	if err == nil {
		err = r.options.Record.Forget(r.written...)
	}
	r.ended.Restored = err == nil
	return errors.Join(err, r.forget(ctx))
}
