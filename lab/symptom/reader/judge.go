package reader

import (
	"io"
	"sort"

	"k8slab/lab/symptom"
)

// Judge reads text of any kind that a cluster prints – kubeadm's output, journals, etcd's JSON, kubectl's tables, the kernel's log, or a
// mix – and names what is wrong, nearest root cause first, then what those brought about. No findings mean that nothing is. source tells
// the reader of a finding where it comes from; redact takes the secrets out of evidence (event.Redact). Memory does not grow with the text.
// The error is r's: what was read until then is still judged.
func Judge(r io.Reader, source string, redact func(string) string) ([]symptom.Finding, error) {
	s := newScan()
	err := s.read(r)
	return s.findings(source, redact), err
}

// Certain names the cause when one line, of any program, shows that a wait for a join cannot end well. No healthy join prints such a line.
func Certain(line string) (symptom.ID, bool) {
	text := append(appendBare(nil, []byte(line)), '\n')
	var ids []symptom.ID
	words().matches(text, &marks{}, func(k *known, warning bool) {
		if k.kind == ofCause && k.pattern.strength == certain && !warning {
			ids = append(ids, k.id)
		}
	})
	for _, id := range ids {
		if rootAmong(id, ids) {
			return id, true
		}
	}
	return "", false
}

func rootAmong(id symptom.ID, ids []symptom.ID) bool {
	for _, other := range ids {
		if symptom.Brings(other, id) {
			return false
		}
	}
	return true
}

// findings weighs what was seen.
func (s *scan) findings(source string, redact func(string) string) []symptom.Finding {
	s.dropOutlived()
	ids := s.standing()
	var because map[symptom.ID]symptom.ID
	if len(ids) == 0 {
		ids = s.guess() // the telling words first; what brought what about is not for guessing
	} else {
		s.order(ids)
		because = s.because(ids)
	}
	var out []symptom.Finding
	for _, consequence := range []bool{false, true} {
		for _, id := range ids {
			if (because[id] != "") == consequence {
				out = append(out, s.finding(id, because[id], source, redact))
			}
		}
	}
	return s.suspect(out)
}

// standing are the causes that count: those proved, and of the weakly shown ones those that explain a general failure which nothing proved
// explains, or all of them when nothing at all is proved and a command failed, or when the text is an excerpt of errors.
func (s *scan) standing() []symptom.ID {
	var proved, shown []symptom.ID
	for _, sym := range symptom.All() {
		t := s.tallies[sym.ID]
		if t != nil && t.slow && s.records > excerptRecords { // an etcd that works says so whenever its computer is busy
			t.repeats, t.weak = 0, t.weak+1
		}
		switch {
		case t == nil:
		case t.proved():
			proved = append(proved, sym.ID)
		default:
			shown = append(shown, sym.ID)
		}
	}
	if len(proved) == 0 && (s.ends > 0 || s.isExcerpt()) {
		return shown
	}
	unexplained := s.unexplained(proved)
	for _, id := range shown {
		if !symptom.General(id) && reachesAny(id, unexplained) {
			proved = append(proved, id)
		}
	}
	return proved
}

// unexplained are the general failures among the proved causes, unless a particular cause is proved beside them.
func (s *scan) unexplained(proved []symptom.ID) []symptom.ID {
	var out []symptom.ID
	for _, id := range proved {
		if !symptom.General(id) && id != symptom.CNINotInitialized { // without a pod network every node that has not joined says so
			return nil
		}
		out = append(out, id)
	}
	return out
}

func reachesAny(id symptom.ID, ids []symptom.ID) bool {
	for _, other := range ids {
		if symptom.Brings(id, other) {
			return true
		}
	}
	return false
}

// explainers counts the causes that bring an ID about: many for what is a sign of almost anything, such as a timeout.
var explainers = func() map[symptom.ID]int {
	n := map[symptom.ID]int{}
	for _, a := range symptom.All() {
		for _, b := range symptom.All() {
			if symptom.Brings(a.ID, b.ID) {
				n[b.ID]++
			}
		}
	}
	return n
}()

// order sorts so that of two causes the one to look at first comes first: what stops nothing last, particular causes before general ones,
// of the particular ones first what ended a command (a list of errors counts from its top, but for what others in it bring about), and of
// the general ones first what fewer causes bring about.
func (s *scan) order(ids []symptom.ID) {
	present := map[symptom.ID]int{}
	for _, id := range ids {
		for _, other := range ids {
			if symptom.Brings(other, id) {
				present[id]++
			}
		}
	}
	rank := func(id symptom.ID) []int {
		t := s.tallies[id]
		if symptom.General(id) {
			return []int{unless(!isMinor(id)), 1, explainers[id], unless(t.deadly > 0), unless(t.proved()), t.first.line, t.record}
		}
		return []int{unless(!isMinor(id)), 0, unless(t.deadly > 0), unless(t.proved()), present[id], t.killer.line, explainers[id], t.first.line, t.record}
	}
	sort.SliceStable(ids, func(i, j int) bool {
		a, b := rank(ids[i]), rank(ids[j])
		for k := range a {
			if a[k] != b[k] {
				return a[k] < b[k]
			}
		}
		return false
	})
}

func isMinor(id symptom.ID) bool {
	sym, _ := symptom.Lookup(id)
	return sym.Minor
}

func unless(good bool) int {
	if good {
		return 0
	}
	return 1
}

// because finds for each consequence the first root that brings it about.
func (s *scan) because(ids []symptom.ID) map[symptom.ID]symptom.ID {
	out := map[symptom.ID]symptom.ID{}
	for _, root := range ids {
		if s.isConsequence(root, ids) {
			continue
		}
		for _, id := range ids {
			if out[id] == "" && s.brings(root, id) {
				out[id] = root
			}
		}
	}
	return out
}

func (s *scan) isConsequence(id symptom.ID, ids []symptom.ID) bool {
	for _, other := range ids {
		if s.brings(other, id) {
			return true
		}
	}
	return false
}

// brings reports whether a brought b about: as the graph says, or because b is what an earlier attempt that a ended left behind, which
// turns the graph's arrow round.
func (s *scan) brings(a, b symptom.ID) bool {
	return s.left(a, b) || symptom.Brings(a, b) && !s.left(b, a)
}

// left reports whether b is only preflight of a later attempt tripping over what the attempt that a ended had made.
func (s *scan) left(a, b symptom.ID) bool {
	leftover := b == symptom.LeftoverState || b == symptom.PortInUse
	made := a != symptom.LeftoverState && a != symptom.PortInUse
	return leftover && made && s.tallies[a].attempt < s.tallies[b].attempt
}

func (s *scan) finding(id, because symptom.ID, source string, redact func(string) string) symptom.Finding {
	sym, _ := symptom.Lookup(id)
	t := s.tallies[id]
	f := symptom.Finding{Symptom: id, Level: symptom.Fail, Meaning: sym.Meaning, Hint: sym.Hint, Repairable: sym.Repairable, BecauseOf: because,
		Detail: s.detailOf(id)}
	f.Repairable = f.Repairable && !t.surmised
	if sym.Minor || because != "" && isMinor(because) || !t.proved() && s.ends == 0 {
		f.Level = symptom.Warn
	}
	told := map[int]bool{0: true}
	for _, at := range []*sight{&t.first, &t.killer, &t.last} {
		if told[at.line] {
			continue
		}
		told[at.line] = true
		e, h := at.evidence(source, redact)
		f.Evidence = append(f.Evidence, e)
		if f.Node == "" {
			f.Node = h.node
		}
	}
	return f
}
