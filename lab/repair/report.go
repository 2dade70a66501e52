package repair

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"k8slab/lab/diagnose"
	"k8slab/lab/health"
	"k8slab/lab/symptom"
	"k8slab/lab/wait"
)

// How long to wait for a healthy cluster: after a repair, and when nothing was repaired. In the second case somebody else may just have
// removed a cause, and a kubelet that could not report needs some seconds to be Ready again, and its pods some more.
const (
	effectTime = 3 * time.Minute
	restTime   = 45 * time.Second
)

// verdict waits until the repairs have taken effect, and adds what was not repaired to the findings. It does not wait for the latter.
func (r *repairRun) verdict(ctx context.Context) error {
	if r.DryRun {
		r.addLeft(unforeseen(r.before, r.found))
		return nil
	}
	budget, findings := restTime, r.before
	if r.waited || r.didAnything() {
		budget, findings = cmp.Or(r.settle, effectTime), nil
	}
	budget *= time.Duration(r.TimeScale())
	pace := max(r.Pace(), time.Second)
	if r.settle > 0 { // what was done takes its time
		pace *= 3
	}
	r.emerged = false
	var open []symptom.Finding
	var rows map[string]int
	err := wait.For(ctx, "the cluster to be healthy", budget, pace, r.showing(func(ctx context.Context) error {
		if findings == nil {
			if findings = r.diagnose(ctx); ctx.Err() != nil {
				return context.Cause(ctx) // a diagnosis that was cut off proves nothing
			}
		}
		rows = inARow(rows, failures(findings, r.found))
		r.addLeft(lasting(findings, r.before, r.found, rows))
		open = failures(findings, r.found)
		findings = nil
		if r.emerged = r.settle == 0 && r.more > 0 && emerged(open, r.before, rows); r.emerged { // a rung of the ladder uncovers what passes
			return wait.Hopeless(errors.New(named(open)))
		}
		if len(open) > 0 {
			return errors.New(named(open))
		}
		return nil
	}))
	switch {
	case err == nil, ctx.Err() != nil:
		return err
	case !r.emerged:
		r.addLeft(open)
	}
	return nil
}

// emergedLooks is in how many looks in a row a new failure must be found before it counts as one that waits for no repair: many pass by
// themselves, and come again.
const emergedLooks = 3

// emerged tells whether the repairs have uncovered a failure that was not found before them, so that another pass may repair it. rows are
// inARow's.
func emerged(open, before []symptom.Finding, rows map[string]int) bool {
	return slices.ContainsFunc(open, func(f symptom.Finding) bool {
		was := slices.ContainsFunc(before, func(b symptom.Finding) bool { return looked(b) == looked(f) })
		return !was && !symptom.General(f.Symptom) && rows[looked(f)] >= emergedLooks
	})
}

// inARow is in how many looks in a row each failure was found, after another look.
func inARow(rows map[string]int, failing []symptom.Finding) map[string]int {
	now := map[string]int{}
	for _, f := range failing {
		now[looked(f)] = rows[looked(f)] + 1
	}
	return now
}

// looked is the failure's name among those that are counted.
func looked(f symptom.Finding) string { return string(f.Symptom) + " " + f.Node }

// showing shows on the step what the check waits for, whenever that changes.
func (r *repairRun) showing(check func(context.Context) error) func(context.Context) error {
	r.step.Progress("verify: diagnosis and proof")
	shown := ""
	return func(ctx context.Context) error {
		err := check(ctx)
		if err != nil && err.Error() != shown {
			shown = err.Error()
			r.step.Progress("waiting: %s", strings.ReplaceAll(shown, "\n", "; "))
		}
		return err
	}
}

func (r *repairRun) diagnose(ctx context.Context) []symptom.Finding {
	return diagnose.Judge(diagnose.Collect(ctx, health.Sources(r.Session, health.DiagnoseOptions{})))
}

func (r *repairRun) didAnything() bool {
	return slices.ContainsFunc(r.found, func(f Repaired) bool { return f.Did != "" })
}

func (r *repairRun) leftAnything() bool {
	return slices.ContainsFunc(r.found, func(f Repaired) bool { return f.Left != "" })
}

// addLeft adds findings of the diagnosis that are not repaired.
func (r *repairRun) addLeft(findings []symptom.Finding) {
	for _, f := range findings {
		r.add(leftOver(f))
	}
}

// leftOver is a finding of a diagnosis that is not repaired.
func leftOver(f symptom.Finding) Repaired {
	left := Repaired{Node: f.Node, Symptom: string(f.Symptom), Evidence: f.Meaning, Left: f.Hint}
	if len(f.Evidence) > 0 {
		left.Evidence = f.Evidence[0].Text
	}
	return left
}

func named(findings []symptom.Finding) string {
	var names []string
	for _, f := range findings {
		name := string(f.Symptom)
		if f.Node != "" {
			name += " on " + f.Node
		}
		names = append(names, name)
	}
	return "the diagnosis finds " + strings.Join(names, ", ")
}

// failures are the root causes among a diagnosis' findings, without those that are left to a person. On a node where something is left,
// other failures are expected and left out too.
func failures(findings []symptom.Finding, found []Repaired) []symptom.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f symptom.Finding) bool {
		return f.Level != symptom.Fail || f.BecauseOf != "" || slices.ContainsFunc(found, func(t Repaired) bool {
			return t.Left != "" && t.Node == f.Node && (f.Node != "" || t.Symptom == string(f.Symptom))
		})
	})
}

// lasting are the failures that will not go away by waiting: a person has to remove their cause, they were there before the first repair,
// nobody called them repairable then, and nothing was repaired on their node. What was repaired there counts for some looks only, unless it
// may be why they fail: a kubelet that was started does not empty its disk. rows are inARow's.
func lasting(findings, before []symptom.Finding, found []Repaired, rows map[string]int) []symptom.Finding {
	return slices.DeleteFunc(failures(findings, found), func(f symptom.Finding) bool {
		was := slices.ContainsFunc(before, func(b symptom.Finding) bool { return looked(b) == looked(f) && !b.Repairable })
		if !was || f.Repairable || symptom.General(f.Symptom) {
			return true
		}
		there := slices.DeleteFunc(slices.Clone(found), func(t Repaired) bool { return t.Node != f.Node || t.Did == "" })
		return len(there) > 0 && rows[looked(f)] < lastingLooks || slices.ContainsFunc(there, func(t Repaired) bool {
			return t.Symptom == string(f.Symptom) || symptom.Brings(symptom.ID(t.Symptom), f.Symptom)
		})
	})
}

// lastingLooks is in how many looks in a row a failure must be found that a repair beside it may not have been about.
const lastingLooks = 5

// unforeseen are the failures for which a dry run found no repair.
func unforeseen(findings []symptom.Finding, found []Repaired) []symptom.Finding {
	return slices.DeleteFunc(failures(findings, found), func(f symptom.Finding) bool {
		return slices.ContainsFunc(found, func(t Repaired) bool {
			id := symptom.ID(t.Symptom)
			same := t.Node == f.Node && (id == f.Symptom || symptom.Brings(id, f.Symptom) || symptom.General(f.Symptom))
			return same || f.Repairable && t.Would != "" && (t.Node == f.Node || t.Node == "")
		})
	})
}
