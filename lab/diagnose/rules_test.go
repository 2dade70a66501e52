package diagnose

import (
	"math/rand/v2"
	"slices"
	"testing"

	"k8slab/lab/diagnose/fact"
	"k8slab/lab/symptom"
)

func names(rules []rule) []ruleName {
	var all []ruleName
	for _, r := range rules {
		all = append(all, r.name)
	}
	return all
}

func TestRules(t *testing.T) {
	_, left := sorted(rules)
	if len(left) > 0 {
		t.Fatalf("they overrule each other in a circle: %q", names(left))
	}
	all, depths, cluster := names(rules), map[int]ruleName{}, false
	for _, r := range inOrder {
		for _, other := range slices.Concat(r.overrules, r.heeds) {
			if !slices.Contains(all, other) || other == r.name {
				t.Errorf("%s knows a rule %q", r.name, other)
			}
		}
		if (r.machine == nil) == (r.cluster == nil) || depths[r.depth] != "" {
			t.Errorf("%s: what it does, or its depth, is not its own", r.name)
		}
		if cluster = cluster || r.cluster != nil; cluster && r.machine != nil || r.machine != nil != slices.Contains(ofMachines, r.name) {
			t.Errorf("%s: the rules of a machine come first, and are listed", r.name)
		}
		depths[r.depth] = r.name
	}
}

func TestOrderOfDeclarationChangesNothing(t *testing.T) {
	for range 20 {
		shuffled := slices.Clone(rules)
		rand.Shuffle(len(shuffled), func(i, k int) { shuffled[i], shuffled[k] = shuffled[k], shuffled[i] })
		if order, left := sorted(shuffled); len(left) > 0 || !slices.Equal(names(order), names(inOrder)) {
			t.Errorf("%q, left %q", names(order), names(left))
		}
	}
}

func TestRulesInACircle(t *testing.T) {
	circle := []rule{{name: "a", overrules: []ruleName{"b"}}, {name: "b", heeds: []ruleName{"c"}}, {name: "c", overrules: []ruleName{"a"}}, {name: "d"}}
	if order, left := sorted(circle); !slices.Equal(names(order), []ruleName{"d"}) || len(left) != 3 {
		t.Errorf("order %q, left %q", names(order), names(left))
	}
}

// What a rule does not overrule or heed it does not see: any order of the rules in which each comes behind those finds the same.
func TestRulesSayWhatTheyDependOn(t *testing.T) {
	type essence struct {
		want
		level      symptom.Level
		repairable bool
		hint       string
	}
	judged := func(f fact.Facts, order []rule) []essence {
		var all []essence
		for _, o := range newJudgement(&f, nil).findings(order) {
			all = append(all, essence{want{o.Symptom, o.Node, o.Detail, o.BecauseOf}, o.Level, o.Repairable, o.Hint})
		}
		slices.SortFunc(all, func(a, b essence) int {
			return slices.Compare([]string{string(a.id), a.node, a.detail}, []string{string(b.id), b.node, b.detail})
		})
		return all
	}
	for _, tt := range damages {
		f := healthyFacts(2)
		tt.damage(&f)
		want := judged(f, inOrder)
		for range 5 {
			mixed := slices.Clone(rules)
			for i, depth := range rand.Perm(len(mixed)) {
				mixed[i].depth = depth
			}
			order, _ := sorted(mixed)
			if got := judged(f, order); !slices.Equal(got, want) {
				t.Errorf("%s: in the order %q\n%+v\nnot\n%+v", tt.name, names(order), got, want)
			}
		}
	}
}
