package reader

import (
	"bytes"
	"regexp"
	"time"

	"k8slab/lab/symptom"
)

// sight is one record in which a cause was seen.
type sight struct {
	line  int // 0 for none
	raw   []byte
	known *known
}

func (s *sight) set(line int, raw []byte, k *known) {
	s.line, s.raw, s.known = line, append(s.raw[:0], raw...), k
}

// tallies are what was seen of each cause.
type tallies map[symptom.ID]*tally

// tally is what was seen of one cause since the last sign that it had passed.
type tally struct {
	sure, weak, repeats     int // records, by what they prove
	enough                  int // repeats needed
	framed                  int // sure records in which it only names a step
	retried                 int // sure records that say that the program tries again
	fatal                   int // records that ended a command
	attempt                 int // kubeadm's attempt when first seen, 0 before any
	first, firstFatal, last sight
	record                  int           // when first seen: a line may hold several
	command                 string        // whose runs said so, "" if several did
	run                     int           // the last that said so
	inPreflight             bool          // it did before it had passed kubeadm's checks
	onlyGuessed             bool          // from its words
	begun, ended            time.Duration // times of day of the repeats
	timed                   bool
	slow                    bool // it is about how long something took
}

// count adds what the record at hand says of the cause.
func (t *tally) count(f find, rec *record, fatal, cleared bool) {
	k, proof := f.known, false
	switch {
	case f.warning && k.pattern.strength != weak:
		// kubeadm was told to ignore it
	case k.pattern.strength == weak, k.pattern.strength == guessed && cleared:
		t.weak++
	case k.pattern.atLeast > 0 && !fatal:
		t.repeat(k.pattern, rec.raw)
	default:
		t.sure++
		proof = true
		if f.frame {
			t.framed++
		}
		if hasAny(rec.normal, retryWords) {
			t.retried++
		}
	}
	// Of all the sights the first, the first that ended a command and the last are kept; what proves takes the place of what does not.
	if t.first.line == 0 || proof && t.sure == 1 {
		t.first.set(rec.line, rec.raw, k)
	}
	if fatal && proof && !f.frame {
		if t.fatal++; t.fatal == 1 {
			t.firstFatal.set(rec.line, rec.raw, k)
		}
	}
	if proof || t.sure == 0 {
		t.last.set(rec.line, rec.raw, k)
	}
}

// repeat counts what must be seen often, or for long.
func (t *tally) repeat(p pattern, raw []byte) {
	t.repeats++
	if p.weighed {
		t.repeats += extraWeight(raw)
		t.slow = true
	}
	t.enough = p.atLeast
	h := readHeader(raw)
	if !h.timed {
		return
	}
	if !t.timed {
		t.timed, t.begun = true, h.clock
	}
	t.ended = h.clock
}

// seconds finds a duration of a second or more as Go prints it in etcd's complaints; milliseconds end in ms.
var seconds = regexp.MustCompile(`["(\[ ](\d+)(?:\.\d+)?s["\] )]`)

func extraWeight(raw []byte) int {
	m := seconds.FindSubmatch(raw[:min(len(raw), 1<<10)])
	switch {
	case m == nil || string(m[1]) == "0":
		return 0
	case len(m[1]) == 1 && m[1][0] < '5':
		return 1
	}
	return 2
}

const (
	day = 24 * time.Hour
	// longTime is how long something harmless may go on before it is not.
	longTime = 45 * time.Second
)

// persists reports whether repeats were many, or at least two far apart.
func (t *tally) persists() bool {
	if t.repeats == 0 {
		return false
	}
	if t.repeats >= t.enough {
		return true
	}
	return t.timed && (t.ended-t.begun+day)%day >= longTime && t.repeats >= 2
}

// proved reports whether the cause stands by itself.
func (t *tally) proved() bool { return t.sure > 0 || t.persists() }

// copied is a tally as it is now.
func (t *tally) copied() *tally {
	if t == nil {
		return nil
	}
	c := *t
	for _, at := range []*sight{&c.first, &c.firstFatal, &c.last} {
		at.raw = bytes.Clone(at.raw)
	}
	return &c
}
