// Package reader finds the causes of package symptom in text: in what programs print, in journals and in logs. It knows the phrases of each
// cause, the signs that a cause has passed, and the words to guess by when it knows no phrase. It reads what it is given and nothing else.
package reader

import (
	"io"
	"slices"
	"sort"
	"sync"

	"k8slab/lab/symptom"
)

// Judge reads text of any kind that a cluster prints – kubeadm's output, journals, etcd's JSON, kubectl's tables, the kernel's log, or a
// mix – and names what is wrong, nearest root cause first, then what those brought about. No findings mean that nothing is. source tells
// the reader of a finding where it comes from; redact takes the secrets out of evidence (event.Redact). Memory does not grow with the text.
// The error is r's: what was read until then is still judged.
func Judge(r io.Reader, source string, redact func(string) string) ([]symptom.Finding, error) {
	read, err := Read(r, source, redact)
	return read.Findings, err
}

// Reading is what a text shows.
type Reading struct {
	Findings []symptom.Finding
	Guessed  bool // nothing in the text is known: its words resemble the findings
	// Undetermined cites where the text says that something failed, if no finding says what: such a text is not healthy, although nothing
	// known fails. Otherwise it is nil.
	Undetermined *symptom.Evidence
}

// Read judges as Judge does, and says more.
func Read(r io.Reader, source string, redact func(string) string) (Reading, error) {
	s := newScan()
	err := s.read(r)
	read := Reading{Findings: s.findings(source, redact), Guessed: s.guessed}
	if line := s.undetermined(read.Findings); line != nil {
		e, _ := line.evidence(source, redact)
		read.Undetermined = &e
	}
	return read, err
}

// Certain names the cause when one line, of any program, shows that a wait for a join cannot end well. No healthy join prints such a line.
func Certain(line string) (symptom.ID, bool) {
	text := append(appendNormalized(nil, []byte(line)), '\n')
	var ids []symptom.ID
	words().matches(text, &marks{}, func(f find) {
		if f.known.kind == ofCause && f.known.pattern.strength == certain && !f.warning {
			ids = append(ids, f.known.id)
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
	return !slices.ContainsFunc(ids, func(other symptom.ID) bool { return symptom.Brings(other, id) })
}

// findings turns what was seen into findings, root causes first.
func (s *scan) findings(source string, redact func(string) string) []symptom.Finding {
	s.endOfText()
	if s.tallies.dropOutlived(s.origin.latest) {
		s.complaints.recovered = true
	}
	ids := s.standing()
	var because map[symptom.ID]symptom.ID
	if s.guessed = len(ids) == 0; s.guessed {
		ids = s.guess() // in order of likelihood: which brought which about cannot be guessed
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

// standing are the causes that count: the proved ones, and the weakly shown ones that explain a general failure which no proved cause
// explains. So does what kubeadm was told to ignore, if it failed after its checks. All weakly shown ones count if nothing is proved and
// either a command failed or the text is an excerpt of errors.
func (s *scan) standing() []symptom.ID {
	var proved, shown, ignored []symptom.ID
	for _, sym := range symptom.All() {
		t := s.tallies[sym.ID]
		if t != nil && t.slow && s.complaints.records > excerptRecords { // a healthy etcd says so too whenever its computer is busy
			t.repeats, t.weak = 0, t.weak+1
		}
		switch {
		case t == nil:
		case t.proved():
			proved = append(proved, sym.ID)
		case t.weak+t.repeats > 0:
			shown = append(shown, sym.ID)
		default:
			ignored = append(ignored, sym.ID)
		}
	}
	if len(proved) == 0 && (s.ends > 0 || s.complaints.isExcerpt()) {
		return shown
	}
	unexplained := s.unexplained(proved)
	for _, id := range shown {
		if !symptom.General(id) && reachesAny(id, unexplained) {
			proved = append(proved, id)
		}
	}
	late := slices.DeleteFunc(unexplained, func(id symptom.ID) bool { return s.tallies[id].inPreflight })
	for _, id := range ignored {
		if reachesAny(id, late) {
			proved = append(proved, id)
		}
	}
	return proved
}

// unexplained are the proved causes if all of them are general failures; otherwise a particular cause explains them.
func (s *scan) unexplained(proved []symptom.ID) []symptom.ID {
	var out []symptom.ID
	for _, id := range proved {
		if !symptom.General(id) && id != symptom.CNINotInitialized { // every node says so until it has a pod network
			return nil
		}
		out = append(out, id)
	}
	return out
}

func reachesAny(id symptom.ID, ids []symptom.ID) bool {
	return slices.ContainsFunc(ids, func(other symptom.ID) bool { return symptom.Brings(id, other) })
}

// explainers counts the causes that bring an ID about. Many do if it can be a sign of almost anything, as a timeout is.
var explainers = sync.OnceValue(func() map[symptom.ID]int {
	n := map[symptom.ID]int{}
	for _, a := range symptom.All() {
		for _, b := range symptom.All() {
			if symptom.Brings(a.ID, b.ID) {
				n[b.ID]++
			}
		}
	}
	return n
})

// order sorts the causes by which to look at first. What stops nothing comes last; before it what only names the step that failed; and
// particular causes come before general ones. Of the particular ones, what ended a command comes first, the last command before earlier
// ones; in a list of errors that is the top one, unless another one in it brings that about. Of the general ones, those come first that
// fewer causes bring about.
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
		if t.framed > 0 && t.framed == t.sure { // it only names the step that failed
			return []int{last(isMinor(id)), 2, t.first.line}
		}
		if symptom.General(id) {
			return []int{last(isMinor(id)), 1, explainers()[id], last(t.fatal == 0), last(!t.proved()), t.first.line, t.record}
		}
		return []int{last(isMinor(id)), 0, last(t.fatal == 0), last(!t.proved()), present[id], -t.run, t.firstFatal.line,
			explainers()[id], t.first.line, t.record}
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

// last is the rank of what comes last if it is so.
func last(is bool) int {
	if is {
		return 1
	}
	return 0
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
	return slices.ContainsFunc(ids, func(other symptom.ID) bool { return s.brings(other, id) })
}

// brings reports whether a brought b about: because the graph says so, or because b is what an attempt left behind that a had ended. The
// latter reverses the graph's direction.
func (s *scan) brings(a, b symptom.ID) bool {
	return s.left(a, b) || symptom.Brings(a, b) && !s.left(b, a)
}

// left reports whether b is only what preflight of a later attempt finds of the attempt that a had ended.
func (s *scan) left(a, b symptom.ID) bool {
	leftover := b == symptom.LeftoverState || b == symptom.PortInUse
	made := a != symptom.LeftoverState && a != symptom.PortInUse
	return leftover && made && s.tallies[a].attempt < s.tallies[b].attempt
}

func (s *scan) finding(id, because symptom.ID, source string, redact func(string) string) symptom.Finding {
	sym, _ := symptom.Lookup(id)
	t := s.tallies[id]
	f := symptom.Finding{Symptom: id, Level: symptom.Fail, Meaning: sym.Meaning, Hint: sym.Hint, Repairable: sym.Repairable,
		BecauseOf: because,
		Detail:    s.detailOf(id)}
	f.Repairable = f.Repairable && !t.onlyGuessed
	if sym.Minor || because != "" && isMinor(because) || !t.proved() && !s.explains(id) {
		f.Level = symptom.Warn
	}
	told := map[int]bool{0: true}
	for _, at := range []*sight{&t.first, &t.firstFatal, &t.last} {
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

// explains reports whether a line states a failure that the cause brings about.
func (s *scan) explains(id symptom.ID) bool {
	for other, t := range s.tallies {
		if t.proved() && symptom.Brings(id, other) {
			return true
		}
	}
	return false
}

// detailOf is what the text told more about a cause, "" if nothing.
func (s *scan) detailOf(id symptom.ID) string {
	for i, d := range details {
		if d.of == id && s.details[i] {
			return d.name
		}
	}
	return ""
}
