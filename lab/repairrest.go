package lab

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8slab/lab/diagnose"
	"k8slab/lab/symptom"
	"k8slab/lab/wait"
)

// restTime is how long a cluster that is not well gets to show that it only settles: a node whose kubelet could not report for a while needs
// seconds to be Ready again, and its pods after it.
const restTime = 45 * time.Second

// rest tells of what is wrong although there was nothing to repair, by a diagnosis: a slow disk, say, under a cluster that is healthy. What was
// repaired has to take effect first. A failure that many causes have may also be the end of one that somebody just removed: it gets a while
// to pass.
func (r *repairing) rest(ctx context.Context) {
	if !r.dryRun && r.repaired() {
		return
	}
	left := unexplained(r.diagnose(ctx), r.found)
	general := func(f Repaired) bool { return symptom.General(symptom.ID(f.Symptom)) }
	if len(left) > 0 && !r.dryRun && !slices.ContainsFunc(left, func(f Repaired) bool { return !general(f) }) {
		settled := wait.For(ctx, "the cluster to settle", restTime, time.Second, func(ctx context.Context) error { return errors.Join(r.lab.healthy(ctx, r.view)...) })
		left = unexplained(r.diagnose(ctx), r.found)
		if settled == nil {
			left = slices.DeleteFunc(left, general)
		}
	}
	for _, f := range left {
		r.add(f)
	}
}

func (r *repairing) diagnose(ctx context.Context) []symptom.Finding {
	return diagnose.Judge(diagnose.Collect(ctx, r.lab.sourcesOf(DiagnoseOptions{})))
}

// repaired tells whether something was done.
func (r *repairing) repaired() bool {
	return slices.ContainsFunc(r.found, func(f Repaired) bool { return f.Left == "" })
}

// unexplained are the roots of a diagnosis that fail something and that are not told of yet.
func unexplained(findings []symptom.Finding, told []Repaired) (left []Repaired) {
	for _, f := range findings {
		if f.Level != symptom.Fail || f.BecauseOf != "" {
			continue
		}
		if f.Node != "" && slices.ContainsFunc(told, func(t Repaired) bool { return t.Node == f.Node }) {
			continue
		}
		found := Repaired{Node: f.Node, Symptom: string(f.Symptom), Evidence: f.Meaning, Left: f.Hint}
		if len(f.Evidence) > 0 {
			found.Evidence = f.Evidence[0].Text
		}
		left = append(left, found)
	}
	return left
}
