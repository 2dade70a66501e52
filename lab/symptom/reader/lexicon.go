package reader

import (
	"slices"
	"strings"
	"sync"

	"k8slab/lab/symptom"
)

// kind is what a known phrase is for.
type kind int

const (
	ofCause kind = iota
	ofRecovery
	ofDetail
)

// find is one known phrase in a record.
type find struct {
	known   *known
	at      int  // where it begins in the record
	warning bool // it stands in one of kubeadm's preflight warnings
	ignored bool // that of a check that would have stopped kubeadm
	frame   bool // it only names the step of a command that failed
}

// known is one phrase of the catalogue, of the recoveries or of the details, ready to match.
type known struct {
	phrase
	kind    kind
	id      symptom.ID // of a cause
	pattern pattern
	index   int // into recoveries or details
}

type lexicon struct {
	all []known
	*matcher
}

// words is everything that is looked for, compiled once, when first used.
var words = sync.OnceValue(func() *lexicon {
	l := &lexicon{}
	for _, s := range symptom.All() {
		for _, p := range patternsOf(s.ID) {
			l.all = append(l.all, known{phrase: compile(p), id: s.ID, pattern: p})
		}
	}
	for i, r := range recoveries {
		l.addTexts(ofRecovery, i, r.phrases)
	}
	for i, d := range details {
		l.addTexts(ofDetail, i, d.phrases)
	}
	ps := make([]phrase, len(l.all))
	for i, k := range l.all {
		ps[i] = k.phrase
	}
	l.matcher = newMatcher(ps)
	return l
})

func (l *lexicon) addTexts(k kind, index int, texts []string) {
	for _, text := range texts {
		p := pattern{phrase: text}
		l.all = append(l.all, known{phrase: compile(p), kind: k, pattern: p, index: index})
	}
}

// matches calls yield with every known phrase that text, in normal form, has. It yields a phrase once, but again after one of kubeadm's
// preflight warnings; a phrase whose repeats count it yields each time. done is the caller's scratch space: without it, a text that
// repeats itself takes time in the square of its length.
func (l *lexicon) matches(text []byte, done *marks, yield func(f find)) {
	s := ""
	done.clear(len(l.all))
	l.each(text, func(i int32, at int) {
		if done.has(i) {
			return
		}
		if s == "" {
			s = string(text)
		}
		k := &l.all[i]
		begin, ok := k.matchAt(s, at)
		if !ok {
			return
		}
		if k.excluded(s) {
			done.add(i)
			return
		}
		f := find{known: k, at: begin}
		f.warning, f.ignored = warned(s, begin)
		if !f.warning && k.pattern.atLeast == 0 {
			done.add(i)
		}
		yield(f)
	})
}

// marks is a set of small numbers. Clearing it does not take longer for a larger set.
type marks struct {
	now uint32
	at  []uint32
}

func (m *marks) clear(size int) {
	if m.now++; len(m.at) < size || m.now == 0 {
		m.at, m.now = make([]uint32, size), 1
	}
}

func (m *marks) add(i int32)      { m.at[i] = m.now }
func (m *marks) has(i int32) bool { return m.at[i] == m.now }

// overruled are kubeadm's checks that stop it, unless its user has it ignore them. Of other checks it always only warns.
var overruled = []string{"port-", "filecontent--", "cri]", "swap]"}

// warned reports whether what begins at an offset of a normalized record is part of one of kubeadm's preflight warnings, such as [WARNING
// Swap] or, in old versions, [preflight] WARNING: a warning stops nothing by itself. ignored: the check would have stopped kubeadm.
func warned(text string, begin int) (warning, ignored bool) {
	const label, old, reach = "[warning", "[preflight]warning:", 600
	from := max(0, begin-reach)
	near := text[from:min(len(text), begin+len(label)+1)]
	at := strings.LastIndex(near, label)
	if at >= 0 && (len(near) == at+len(label) || near[at+len(label)] == ']') { // the level of a log, not the name of a check
		at = -1
	}
	warning = max(at, strings.LastIndex(near, old)) > strings.LastIndex(near, "[error")
	return warning, warning && at >= 0 && slices.ContainsFunc(overruled, func(check string) bool {
		return strings.HasPrefix(text[from+at+len(label):], check)
	})
}
