package diagnose

import (
	"slices"

	"k8slab/lab/symptom"
)

// crossesNodes are the failures of a cluster as a whole, which a cause on one node can bring about on another.
var crossesNodes = map[symptom.ID]bool{
	symptom.APIServerUnreachable: true, symptom.EtcdUnreachable: true, symptom.EtcdNoQuorum: true, symptom.EtcdLearnerNotInSync: true,
	symptom.ControlPlaneCrashloop: true, symptom.ControllerManagerFailing: true, symptom.NetworkPluginPodsFailing: true,
	symptom.TLSBootstrapTimeout: true,
}

// relate orders findings root causes first, those that explain most at the front, and consequences after them, each with the root that
// brought it about. near says of two findings of which the graph knows that the one can bring the other about whether it can here.
func relate(findings []symptom.Finding, near func(cause, effect symptom.Finding) bool) []symptom.Finding {
	given := make([]symptom.Finding, len(findings)) // what the judge of one text knew of the order in time, which the graph does not
	copy(given, findings)
	said := func(a, b int) bool { return given[b].BecauseOf == given[a].Symptom && given[a].Node == given[b].Node }
	brings := func(a, b int) bool {
		return said(a, b) || symptom.Brings(given[a].Symptom, given[b].Symptom) && near(given[a], given[b]) && !said(b, a)
	}
	var roots []int
	for b := range findings {
		if !slices.ContainsFunc(indexes(findings), func(a int) bool { return a != b && brings(a, b) }) {
			roots = append(roots, b)
		}
	}
	explained := make([]int, len(findings))
	for _, a := range roots {
		for b := range findings {
			if a != b && brings(a, b) {
				explained[a]++
			}
		}
	}
	slices.SortStableFunc(roots, func(a, b int) int {
		for _, key := range []func(int) int{
			func(i int) int { return flag(findings[i].Level != symptom.Fail) },
			func(i int) int { return flag(symptom.General(findings[i].Symptom)) },
			func(i int) int { return -explained[i] },
		} {
			if d := key(a) - key(b); d != 0 {
				return d
			}
		}
		return 0
	})
	ordered := make([]symptom.Finding, 0, len(findings))
	for _, a := range roots {
		findings[a].BecauseOf = ""
		ordered = append(ordered, findings[a])
	}
	told := map[int]bool{}
	for _, a := range slices.Concat(roots, indexes(findings)) { // a root's far consequence may be near to none but another consequence
		for b := range findings {
			if a != b && !told[b] && brings(a, b) && !slices.Contains(roots, b) {
				told[b] = true
				findings[b].BecauseOf = given[a].Symptom
				ordered = append(ordered, findings[b])
			}
		}
	}
	return ordered
}

func indexes(findings []symptom.Finding) []int {
	all := make([]int, len(findings))
	for i := range all {
		all[i] = i
	}
	return all
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
