package diagnose

import (
	"cmp"
	"slices"
	"strings"

	"k8slab/lab/diagnose/fact"
	"k8slab/lab/diagnose/siterule"
	"k8slab/lab/event"
	"k8slab/lab/symptom"
	"k8slab/lab/symptom/reader"
)

// Judge says what is wrong, from the facts alone. Measurements alone decide what is wrong now. Journals and logs contain old trouble beside
// new, so they only explain why. A healthy cluster yields no findings, whatever happened to it before.
func Judge(f fact.Facts) []symptom.Finding { return newJudgement(&f, nil).findings(inOrder) }

// judgement is one run of the judge. What it cannot name goes to unread, with where to look.
type judgement struct {
	f        *fact.Facts
	rules    *siterule.Set
	found    []claim
	rule     rule // at work
	unread   []string
	machines map[string]*fact.Machine
	losses   map[int]map[string]int       // what lostAt has counted, by port
	texts    map[string][]symptom.Finding // what the texts of a node show, judged when first needed
	unjoined []spot                       // machines that are in no cluster, and of which no join has failed
	told     map[spot]string              // the text by which something was found that nobody measured
	vague    []vague                      // failures that tell no cause
}

// spot is where something was found.
type spot struct {
	id   symptom.ID
	node string
}

func newJudgement(f *fact.Facts, rules *siterule.Set) *judgement {
	return &judgement{
		f: f, rules: rules, machines: f.ByName(), losses: map[int]map[string]int{}, texts: map[string][]symptom.Finding{}, told: map[spot]string{},
	}
}

func (j *judgement) findings(order []rule) []symptom.Finding {
	j.apply(order)
	found := make([]symptom.Finding, 0, len(j.found))
	for _, c := range j.found {
		found = append(found, c.Finding)
	}
	return relate(found, j.rules, j.brought)
}

// find adds a finding that was measured, or more evidence of it. The caller may change the finding until it adds the next.
func (j *judgement) find(id symptom.ID, node, source, text string) *symptom.Finding {
	return j.findKind(id, "", node, source, text)
}

func (j *judgement) findKind(id symptom.ID, detail, node, source, text string) *symptom.Finding {
	s, _ := symptom.Lookup(id)
	f := symptom.Finding{
		Symptom: id, Detail: detail, Level: symptom.Fail, Node: node, Meaning: s.Meaning, Hint: s.Hint,
		Evidence: []symptom.Evidence{{Source: source, Text: event.Redact(oneLine(text))}},
	}
	delete(j.told, spotOf(f))
	return j.add(f)
}

// organs adds what a member's measurements of itself show.
func (j *judgement) organs(m *fact.Machine) {
	if !settled(m) {
		return
	}
	for _, d := range evident(m.Inside, specific) {
		f := symptom.Finding{Symptom: d.Symptom, Level: symptom.Fail, Node: m.Name, Hint: d.Hint,
			Evidence: []symptom.Evidence{{Source: d.Where, Text: event.Redact(oneLine(d.Text))}}}
		if d.Warn {
			f.Level = symptom.Warn
		}
		if s, found := symptom.Lookup(d.Symptom); found {
			f.Meaning, f.Hint = s.Meaning, cmp.Or(d.Hint, s.Hint)
		}
		delete(j.told, spotOf(f))
		j.add(f)
	}
}

// fails notes a failure that tells no cause.
func (j *judgement) fails(organ, node, measured, text, next string) {
	j.vague = append(j.vague, vague{fact.Organ{Name: organ, Node: node, Detail: measured, Error: text}, next})
}

// unexplained makes a finding of each failure that no other finding explains. So none is ever silent, whether or not anybody knows its
// cause.
func (j *judgement) unexplained() {
	failures := vagueOf("", j.f.Proof)
	for i := range j.f.Machines {
		if m := &j.f.Machines[i]; !silent(m) && settled(m) {
			failures = append(failures, vagueOf(m.Name, m.Inside.Organs)...)
		}
	}
	for _, v := range append(failures, j.vague...) {
		if v.Error == "" || j.accounted(v.Node) {
			continue
		}
		if v.Late {
			j.unread = append(j.unread, strings.TrimSpace(v.Node+" "+v.Name)+": "+v.Error)
			continue
		}
		f := j.findKind(symptom.Unexplained, v.Name, v.Node, cmp.Or(v.Detail, "measured"), v.Error)
		measured, m := j.f.Proof, j.machines[v.Node]
		if m != nil && m.Inside != nil {
			measured = slices.Concat(measured, m.Inside.Organs)
		}
		v.tell(f, measured)
		if m != nil && m.Inside != nil && m.Inside.Facts.Running() {
			f.Meaning = "A join is at work on the node, which is no working member yet."
			f.Hint = "wait for its end: `labctl logs " + v.Node + " -f` shows it"
		}
	}
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

func (j *judgement) has(id symptom.ID, node string) bool {
	return j.any(func(f symptom.Finding) bool { return f.Symptom == id && f.Node == node })
}

// on reports whether anything was found on the node.
func (j *judgement) on(node string) bool {
	return j.any(func(f symptom.Finding) bool { return f.Node == node })
}

// near reports whether a finding on one node can be the cause of a finding on another node or of the whole cluster. Only a control plane's
// failure or a firewall reaches that far.
func (j *judgement) near(cause, effect symptom.Finding) bool {
	if ofUserPod(cause) || ofUserPod(effect) || !breaks(cause) {
		return false
	}
	if cause.Node == effect.Node || cause.Node == "" {
		return true
	}
	wide := j.controlPlane(cause.Node) || cause.Symptom == symptom.FirewallBlocked
	return wide && (effect.Node == "" || crossesNodes[effect.Symptom])
}

func (j *judgement) controlPlane(name string) bool {
	m := j.machines[name]
	return m != nil && m.Role == roleControlPlane
}

const (
	roleControlPlane = "control-plane"
	stateRunning     = "running"
)

// joined reports whether the machine is, or was, a member of a cluster.
func joined(m *fact.Machine) bool {
	return m != nil && m.Inside != nil && (m.Inside.Facts.Joined || m.Inside.Facts.Role != "" && !unfinished(m))
}

// silent reports whether nothing on the machine can answer.
func silent(m *fact.Machine) bool {
	return m == nil || m.SSH != "" || m.State != stateRunning && m.State != ""
}

// apart reports whether the cluster has no machine that could be asked: nobody but its API server tells of it.
func (j *judgement) apart() bool { return len(j.f.Machines) == 0 && !j.f.Part }

// cluster reports whether there is a cluster, as far as the API server or a machine says so.
func (j *judgement) cluster() bool {
	return j.f.API.Via != "" || j.apart() || slices.ContainsFunc(j.f.Machines, func(m fact.Machine) bool { return joined(&m) })
}

// oneAPI merges the findings of several machines that cannot reach the API server into one.
func (j *judgement) oneAPI() {
	all := j.takeBack(func(f symptom.Finding) bool { return f.Symptom == symptom.APIServerUnreachable })
	if len(all) == 0 {
		return
	}
	one := all[0]
	one.Evidence = nil
	for i := range j.f.Machines { // what holds the virtual address
		m := &j.f.Machines[i]
		if u := unitOf(m, "keepalived"); m.Role == roleControlPlane && u.Load == "loaded" && u.Active != "active" {
			one.Evidence = append(one.Evidence, symptom.Evidence{Source: m.Name + " keepalived.service", Text: "it is " + u.Active})
		}
	}
	for _, f := range all {
		if len(all) > 1 {
			one.Node = ""
		}
		for _, e := range f.Evidence {
			e.Source = strings.TrimSpace(f.Node + " " + e.Source)
			one.Evidence = append(one.Evidence, e)
		}
	}
	one.Evidence = one.Evidence[:min(len(one.Evidence), evidenceLimit)]
	j.add(one)
}

func unitOf(m *fact.Machine, name string) fact.Unit {
	if m.Inside == nil {
		return fact.Unit{}
	}
	return m.Inside.Units[name]
}

// specific is the likeliest cause that a program's own message names, if that cause can lead to the failure; otherwise the failure itself. A
// guess names no cause by itself.
func specific(words string, failure symptom.ID) symptom.ID {
	found, err := reader.Judge(strings.NewReader(words), "", func(s string) string { return s })
	if err != nil || len(found) == 0 {
		return failure
	}
	id := found[0].Symptom
	if failure == "" && found[0].Level == symptom.Fail || symptom.Brings(id, failure) {
		return id
	}
	return failure
}

// files judges the files that a component needs and that are not as the image made them. What another rule has named already gets more
// evidence, and labctl repair as its remedy, because that puts the files back.
func (j *judgement) files(m *fact.Machine) {
	for _, c := range sortedFiles(m.Inside.Files, func(id symptom.ID) bool { return j.has(id, m.Name) }) {
		if c.fails() {
			j.changed(m, c).Repairable = true
		}
	}
}

// comforts warns of changed files that no component needs, and of extra files.
func (j *judgement) comforts() {
	for i := range j.f.Machines {
		m := &j.f.Machines[i]
		if silent(m) || m.Inside == nil {
			continue
		}
		for _, c := range sortedFiles(m.Inside.Files, func(id symptom.ID) bool { return j.has(id, m.Name) }) {
			if c.fails() {
				continue
			}
			f := j.changed(m, c)
			f.Level, f.Repairable = symptom.Warn, c.detail != extraFile
			if c.detail == extraFile {
				f.Meaning = "A file that the node's image does not have changes what a component does."
				f.Hint = "Nothing, if you put it there; else remove it, `systemctl daemon-reload`, and restart the component."
			}
		}
	}
}

// changed adds the finding of the files.
func (j *judgement) changed(m *fact.Machine, c changedFiles) (f *symptom.Finding) {
	for _, line := range c.lines(evidenceLimit) {
		f = j.findKind(c.id, c.detail, m.Name, "files", line)
	}
	return f
}
