package diagnose

import (
	"cmp"
	"fmt"
	"slices"

	"k8slab/lab/diagnose/fact"
	"k8slab/lab/event"
	joining "k8slab/lab/join"
	"k8slab/lab/symptom"
)

// organs judges what the measurements of a member show by themselves. An organ that fails without showing why is for later rules.
func (j *judgement) organs(m *fact.Machine) {
	if !settled(m) {
		return
	}
	for _, o := range m.Inside.Organs {
		for _, d := range named(o) {
			j.defect(m.Name, d)
		}
	}
	j.boot(m)
}

// defect adds a finding of what a measurement found, with its own level.
func (j *judgement) defect(node string, d joining.Defect) {
	s, _ := symptom.Lookup(d.Symptom)
	f := symptom.Finding{
		Symptom: d.Symptom, Level: symptom.Fail, Node: node, Meaning: s.Meaning, Hint: cmp.Or(d.Hint, s.Hint),
		Evidence: []symptom.Evidence{{Source: d.Where, Text: event.Redact(oneLine(d.Text))}},
	}
	if d.Warn {
		f.Level = symptom.Warn
	}
	delete(j.told, spotOf(f))
	j.add(f)
}

// named are the causes that a measurement shows: those that it named, or the one that the program's own message names.
func named(o fact.Organ) []joining.Defect {
	if len(o.Named) > 0 || o.Error == "" {
		return o.Named
	}
	if id := specific(o.Error, ""); id != "" {
		return []joining.Defect{{Symptom: id, Where: o.Name, Text: o.Error}}
	}
	return nil
}

// startAtBoot are the units without which a node does not come back after its machine has restarted.
var startAtBoot = []string{"containerd", "kubelet", "keepalived", "ssh"}

// boot judges whether what runs now would run again. A masked kubelet is a check's.
func (j *judgement) boot(m *fact.Machine) {
	for _, name := range startAtBoot {
		u := m.Inside.Units[name]
		off := slices.Contains([]string{"disabled", "masked", "masked-runtime"}, u.Boot)
		if !off || u.Active != "active" || name == "kubelet" && u.Boot != "disabled" {
			continue
		}
		j.defect(m.Name, joining.Defect{Symptom: symptom.FileChanged, Where: name + ".service", Warn: u.Boot == "disabled",
			Text: fmt.Sprintf("it runs, and it is %s: it does not start with the machine", u.Boot),
			Hint: fmt.Sprintf("systemctl unmask %[1]s; systemctl enable %[1]s", name)})
	}
}
