package diagnose

import (
	"slices"

	"k8slab/lab/diagnose/siterule"
	"k8slab/lab/symptom"
)

// crossesNodes are the failures of a cluster as a whole, which a cause on one node can bring about on another.
var crossesNodes = map[symptom.ID]bool{
	symptom.APIServerUnreachable: true, symptom.EtcdUnreachable: true, symptom.EtcdNoQuorum: true, symptom.EtcdLearnerNotInSync: true,
	symptom.ControlPlaneCrashloop: true, symptom.ControllerManagerFailing: true, symptom.NetworkPluginPodsFailing: true,
	symptom.TLSBootstrapTimeout: true,
}

// relate puts root causes first, those that explain most at the front, and then the consequences, each with its root cause. The graph of
// symptoms knows which cause can lead to which effect, and rules know it of a site's own causes; near decides whether it can for these two findings.
// What only a site's rule warns of brings nothing about.
func relate(findings []symptom.Finding, rules *siterule.Set, near func(cause, effect symptom.Finding) bool,
) []symptom.Finding {
	given := make([]symptom.Finding, len(findings)) // with what the reader of one text knew of the order in time
	copy(given, findings)
	said := func(a, b int) bool { return given[b].BecauseOf == given[a].Symptom && given[a].Node == given[b].Node }
	effects := effectsOf(given, rules, func(a, b int) bool {
		idle := given[a].Rule != "" && given[a].Level == symptom.Warn
		return said(a, b) || !idle && rules.Brings(given[a].Symptom, given[b].Symptom) && near(given[a], given[b]) && !said(b, a)
	})
	caused := make([]bool, len(findings))
	for _, all := range effects {
		for _, b := range all {
			caused[b] = true
		}
	}
	roots := slices.DeleteFunc(indexes(findings), func(i int) bool { return caused[i] })
	slices.SortStableFunc(roots, func(a, b int) int {
		for _, key := range []func(int) int{
			func(i int) int { return flag(findings[i].Level != symptom.Fail) },
			func(i int) int { return flag(symptom.General(findings[i].Symptom)) },
			func(i int) int { return -len(effects[i]) },
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
	for _, a := range slices.Concat(roots, indexes(findings)) { // a consequence of a consequence may be far from the root
		for _, b := range effects[a] {
			if !told[b] {
				told[b] = true
				findings[b].BecauseOf = given[a].Symptom
				ordered = append(ordered, findings[b])
			}
		}
	}
	return ordered
}

// effectsOf lists for each finding its effects, in order. It asks only about pairs that the graph or a text connects, because a cluster of
// a thousand nodes can have thousands of findings.
func effectsOf(findings []symptom.Finding, rules *siterule.Set, brings func(a, b int) bool) [][]int {
	ofSymptom, said := map[symptom.ID][]int{}, map[[2]symptom.ID]bool{}
	for i, f := range findings {
		ofSymptom[f.Symptom] = append(ofSymptom[f.Symptom], i)
		said[[2]symptom.ID{f.BecauseOf, f.Symptom}] = true
	}
	effects := make([][]int, len(findings))
	for cause, from := range ofSymptom {
		for effect, to := range ofSymptom {
			if !rules.Brings(cause, effect) && !said[[2]symptom.ID{cause, effect}] {
				continue
			}
			for _, a := range from {
				for _, b := range to {
					if a != b && brings(a, b) {
						effects[a] = append(effects[a], b)
					}
				}
			}
		}
	}
	for _, all := range effects {
		slices.Sort(all)
	}
	return effects
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
