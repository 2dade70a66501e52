package reader

import (
	"bytes"
	"io"
	"slices"

	"k8slab/lab/symptom"
)

// scan reads text and keeps what it proves; its size does not depend on the text's.
type scan struct {
	words      *lexicon
	reader     recordReader
	tallies    tallies
	cleared    map[symptom.ID]bool // causes that a recovery has taken back in this attempt
	attempts   int                 // of kubeadm, so far
	preflight  bool                // kubeadm's run has not passed its checks yet
	run        run
	calm       int    // records since the last complaint
	ended      sight  // the last record that ended a command
	unknown    sight  // the last that looks like an error and is not known
	unknownOf  string // the command that said so
	ends       int    // commands that ended with an error since the last success
	complaints complaints
	guessed    bool // nothing was known
	duplicates duplicateIDs
	origin     origin
	owner      podOwner
	found      []find // in the record at hand
	done       marks
	details    []bool // that the text told, by index into details
}

// findLimit is how much of what one record says is counted.
const findLimit = 200

func newScan() *scan {
	s := &scan{words: words(), tallies: tallies{}, cleared: map[symptom.ID]bool{}, details: make([]bool, len(details)),
		origin: origin{latest: map[string][]byte{}}}
	s.reader.onRecord = s.judge
	s.reader.onLine = func(number int, line []byte) {
		if s.duplicates.reads(number, line) {
			s.count(find{known: duplicateID}, false)
		}
	}
	return s
}

// read takes all of r.
func (s *scan) read(r io.Reader) error { return s.reader.read(r) }

// ignored is what Ansible writes after a task that failed and need not succeed.
var ignored = []byte("}...ignoring")

// judge takes the record at hand.
func (s *scan) judge() {
	rec := &s.reader.rec
	s.found = s.found[:0]
	if bytes.Contains(rec.normal, ignored) {
		return
	}
	fatal, last := bytes.HasPrefix(rec.normal, []byte("error:")), false
	typed := commandOf(rec.raw)
	if typed != "" {
		s.begin(typed)
	}
	s.words.matches(rec.normal, &s.done, func(f find) {
		if len(s.found) < findLimit {
			s.found = append(s.found, f)
		}
		if f.known.kind == ofRecovery {
			what := recoveries[f.known.index].what
			last = last || what == commandEnds
			fatal = fatal || last || what == commandFailed
		}
	})
	if fatal {
		s.ends++
	}
	s.origin.note(rec.raw, s.tallies)
	matched := len(s.found)
	s.found = s.owner.withoutUsersOwn(s.origin.withoutHarmless(s.found, rec.raw), rec.raw)
	s.complaints.add(rec, s.found, fatal, len(s.found) < matched)
	if fatal {
		markFrames(s.found)
	}
	if typed == "" {
		s.note(rec, fatal, len(s.found) < matched)
	}
	var passed []symptom.ID // what a record says has passed, it does not state
	for _, f := range s.found {
		if f.known.kind == ofRecovery {
			passed = append(passed, recoveries[f.known.index].causes...)
		}
	}
	for _, f := range s.found {
		switch f.known.kind {
		case ofRecovery:
			s.recover(recoveries[f.known.index])
		case ofDetail:
			s.details[f.known.index] = true
		default:
			if !slices.Contains(passed, f.known.id) {
				s.count(f, fatal)
			}
		}
	}
	if last {
		s.run.number++ // another run says what comes
	}
}

// recover takes back what a sign of recovery says has passed.
func (s *scan) recover(r recovery) {
	if r.what == joined || r.what == clears {
		s.complaints.recover()
		s.unknown.line = 0
	}
	switch r.what {
	case attemptBegins:
		s.begin(kubeadm)
		s.attempts++
		s.preflight = true
		clear(s.cleared)
	case restarts:
		s.begin("")
	case passesPreflight:
		s.passedPreflight()
	case playEnds:
		s.hostPassed(s.reader.rec.raw)
	case joined:
		s.ends = 0
		for id, t := range s.tallies {
			if t.attempt > 0 || s.attempts == 0 || !slices.Contains(outlastsJoin, id) {
				delete(s.tallies, id)
			}
		}
	case clears:
		for _, id := range r.causes {
			delete(s.tallies, id)
			s.cleared[id] = true
		}
	}
}

// count adds a sight of a cause in the record at hand.
func (s *scan) count(f find, fatal bool) {
	if f.warning && !f.ignored && f.known.pattern.strength != weak {
		return
	}
	id := f.known.id
	t := s.tallies[id]
	first := t == nil
	if first {
		t = &tally{attempt: s.attempts, record: s.complaints.records}
		s.tallies[id] = t
	}
	t.seenIn(s.run, s.preflight, first)
	t.count(f, &s.reader.rec, fatal, s.cleared[id])
}
