package diagnose

import (
	"cmp"
	"slices"
	"strings"

	"k8slab/lab/diagnose/fact"
	"k8slab/lab/symptom"
)

// vague is a failure that tells no cause.
type vague struct {
	fact.Organ
	next string // where to look; "" for the catalogue's hint
}

// vagueOf are the organs, those of a node with its name.
func vagueOf(node string, organs []fact.Organ) []vague {
	all := make([]vague, 0, len(organs))
	for _, o := range organs {
		o.Node = cmp.Or(node, o.Node)
		all = append(all, vague{Organ: o})
	}
	return all
}

// tell adds to the finding of the failure what logs say of it, and which of the measured organs work.
func (v vague) tell(f *symptom.Finding, measured []fact.Organ) {
	f.Hint = cmp.Or(v.next, f.Hint)
	for _, line := range v.Lines {
		f.Evidence = append(f.Evidence, symptom.Evidence{Source: "log", Text: strings.Join(strings.Fields(line), " ")})
	}
	var works []string
	for _, o := range measured {
		if o.Error == "" && !slices.Contains(works, o.Name) {
			works = append(works, o.Name)
		}
	}
	f.Evidence = f.Evidence[:min(len(f.Evidence), mostTold)]
	if len(works) > 0 {
		f.Evidence = append(f.Evidence, symptom.Evidence{Source: "ruled out", Text: "these work: " + strings.Join(works, ", ")})
	}
}

// mostTold is how many pieces of evidence an unexplained failure has, beside what was ruled out.
const mostTold = 4
