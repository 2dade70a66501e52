package diagnose

import (
	"cmp"
	"fmt"
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

// fails notes a failure that tells no cause.
func (j *judgement) fails(organ, node, measured, text, next string) {
	j.vague = append(j.vague, vague{fact.Organ{Name: organ, Node: node, Detail: measured, Error: text}, next})
}

// unexplained makes a finding of each failure that no other finding explains. So none is ever silent, whether or not anybody knows its
// cause.
func (j *judgement) unexplained() {
	for _, o := range j.f.Proof {
		j.ill(vague{Organ: o})
	}
	for i := range j.f.Machines {
		m := &j.f.Machines[i]
		if silent(m) || m.Inside == nil || !settled(m) {
			continue
		}
		for _, o := range m.Inside.Organs {
			o.Node = m.Name
			j.ill(vague{Organ: o})
		}
	}
	for _, v := range j.vague {
		j.ill(v)
	}
}

// ill makes the finding of a failure without an explanation.
func (j *judgement) ill(o vague) {
	if o.Error == "" || o.Late || j.accounted(o.Node) {
		return
	}
	f := j.findKind(symptom.Unexplained, o.Name, o.Node, cmp.Or(o.Detail, "measured"), o.Error)
	f.Hint = cmp.Or(o.next, f.Hint)
	if m := j.machines[o.Node]; m != nil && m.Inside != nil && m.Inside.Facts.Running() {
		f.Meaning, f.Hint = "A join is at work on the node, which is no working member yet.", "wait for its end: `labctl logs "+o.Node+" -f` shows it"
	}
	for _, line := range o.Lines {
		f.Evidence = append(f.Evidence, symptom.Evidence{Source: "log", Text: oneLine(line)})
	}
	if works := j.works(o.Node); works != "" {
		f.Evidence = append(f.Evidence, symptom.Evidence{Source: "ruled out", Text: works})
	}
	f.Evidence = f.Evidence[:min(len(f.Evidence), evidenceLimit)]
}

// accounted reports whether another finding can be why something fails there: one of the same node, of the whole cluster, or of what every
// node needs. For the whole cluster, every finding can.
func (j *judgement) accounted(node string) bool {
	return j.any(func(f symptom.Finding) bool {
		if f.Level != symptom.Fail || f.Symptom == symptom.Unexplained {
			return false
		}
		return node == "" || f.Node == "" || f.Node == node || j.controlPlane(f.Node) && symptom.General(f.Symptom) ||
			f.Symptom == symptom.FirewallBlocked
	})
}

// works lists what was measured and works, on the node or in the cluster.
func (j *judgement) works(node string) string {
	var names []string
	add := func(o fact.Organ) {
		if o.Error == "" && !slices.Contains(names, o.Name) {
			names = append(names, o.Name)
		}
	}
	for _, o := range j.f.Proof {
		add(o)
	}
	if m := j.machines[node]; m != nil && m.Inside != nil {
		for _, o := range m.Inside.Organs {
			add(o)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("these work: %s", strings.Join(names, ", "))
}
