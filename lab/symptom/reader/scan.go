package reader

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"regexp"
	"time"

	"k8slab/lab/symptom"
)

// pieceLimit is the longest part of a line that is looked at as one, in bytes.
const pieceLimit = 64 << 10

// sight is one record in which a cause was seen.
type sight struct {
	line  int // 0 for none
	raw   []byte
	known *known
}

func (s *sight) set(line int, raw []byte, k *known) {
	s.line, s.raw, s.known = line, append(s.raw[:0], raw...), k
}

// tally is what was seen of one cause since the last sign that it had passed.
type tally struct {
	sure, weak, repeats int // records, by what they prove
	enough              int // repeats needed
	deadly              int // records that ended a command
	attempt             int // kubeadm's attempt when first seen, 0 before any
	first, killer, last sight
	record              int           // when first seen: lines may hold several
	surmised            bool          // only words hint at it
	begun, ended        time.Duration // times of day of the repeats
	timed               bool
	slow                bool // it is about how long something took
}

// scan reads text and keeps what it proves; its size does not depend on the text's.
type scan struct {
	words      *lexicon
	rec        record
	line       int
	tallies    map[symptom.ID]*tally
	over       map[symptom.ID]bool // causes that a recovery has taken back in this attempt
	attempts   int
	ends       int // commands that ended with an error since the last success
	records    int // how many there were
	complaints []complaint
	graves     int         // of them and others at the text's beginning, those that call themselves errors
	recovered  bool        // something was seen to have passed
	opening    []string    // the first records, as they were read
	laments    []string    // the first of those that complain
	troubles   []complaint // the first that complain of what is not known
	reassured  bool        // it says that something works
	familiar   bool        // something is known of the text, or it says that something works
	twins      twins
	found      []find
	done       marks
	subject    string // the pod whose events are being read
	told       []bool // by index into details
	heading    string // of the page that is being read, until its state has been
	usersPull  bool   // the image that was named last is a user's own
	container  bool   // the text is of a machine that is a container
	// oomElsewhere: the kernel's last report of a process that it ended for want of memory is not about this node; beforeOOM is what was seen
	// of that cause before the report began.
	oomElsewhere bool
	beforeOOM    *tally
	latest       []byte // the head of the last line of a journal that the kubelet wrote
}

// findLimit is how much of what one record says is counted.
const findLimit = 200

// find is one known phrase in the record at hand.
type find struct {
	known   *known
	warning bool
}

func newScan() *scan {
	return &scan{words: words(), tallies: map[symptom.ID]*tally{}, over: map[symptom.ID]bool{}, told: make([]bool, len(details))}
}

// read takes all of r.
func (s *scan) read(r io.Reader) error {
	in := bufio.NewReaderSize(r, pieceLimit)
	cut := false
	for {
		line, err := in.ReadSlice('\n')
		full := errors.Is(err, bufio.ErrBufferFull)
		s.physical(whole(line, cut, full))
		if cut = full; cut {
			continue
		}
		if err != nil {
			s.flush()
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		s.line++
	}
}

// whole drops the words of a line's part that belong half to another part, so that no half of a secret looks harmless.
func whole(part []byte, before, after bool) []byte {
	const longestSecret = 128 // where there are no words
	if before {
		i := bytes.IndexAny(part, " \t")
		if i < 0 {
			i = min(len(part), longestSecret)
		}
		part = part[i:]
	}
	if after {
		i := bytes.LastIndexAny(part, " \t")
		if i < 0 {
			i = max(0, len(part)-longestSecret)
		}
		part = part[:i]
	}
	return part
}

// physical takes one line, or a part of one that is too long. Line ends that are written as \n, in JSON and what Ansible prints, end one
// too.
func (s *scan) physical(line []byte) {
	for bytes.IndexByte(line, '\\') >= 0 {
		i := bytes.Index(line, []byte(`\n`))
		if i < 0 {
			break
		}
		s.logical(bytes.TrimRight(line[:i], `\`))
		s.flush()
		line = line[i+2:]
	}
	s.logical(line)
}

func (s *scan) logical(line []byte) {
	line = unquoted(line)
	if !s.rec.goesOn(line) {
		s.flush()
	}
	if heading := headingOf(line); heading != "" {
		s.heading = heading
	} else if s.heading != "" && saysState(line) {
		line = append([]byte(s.heading), line...)
		s.heading = ""
	}
	if subject := subjectOf(line); subject != "" {
		s.subject = subject
	} else if s.subject != "" && saysReason(line) {
		line = append([]byte(s.subject+" "), line...)
	} else if s.subject != "" && bytes.HasSuffix(line, backOff) { // which container, older kubelets do not say
		line = append(append(append([]byte(nil), line...), ' '), s.subject...)
	}
	s.rec.add(line)
	if s.twins.reads(s.line, line) {
		s.count(twin, false, false)
	}
}

// flush judges the record that has been gathered, and begins another.
func (s *scan) flush() {
	if len(s.rec.bare) > 0 {
		s.rec.bare = append(s.rec.bare, '\n')
		s.judge()
	}
	s.rec.reset(s.line + 1)
}

// ignored is what Ansible writes after a task that failed and need not succeed.
var ignored = []byte("}...ignoring")

func (s *scan) judge() {
	s.found = s.found[:0]
	if bytes.Contains(s.rec.bare, ignored) {
		return
	}
	deadly := bytes.HasPrefix(s.rec.bare, []byte("error:"))
	s.words.matches(s.rec.bare, &s.done, func(k *known, warning bool) {
		if len(s.found) < findLimit {
			s.found = append(s.found, find{k, warning})
		}
		deadly = deadly || k.kind == ofRecovery && recoveries[k.index].what == ended
	})
	if deadly {
		s.ends++
	}
	s.note()
	harmless, users := s.dropHarmless(), s.dropUsersOwn()
	s.complain(deadly, harmless || users)
	if len(s.found) == 0 {
		return
	}
	s.familiar = true
	for _, f := range s.found {
		switch f.known.kind {
		case ofRecovery:
			s.passed(recoveries[f.known.index])
		case ofDetail:
			s.told[f.known.index] = true
		default:
			s.count(f.known, f.warning, deadly)
		}
	}
}

func (s *scan) passed(r recovery) {
	if r.what == joined || r.what == some {
		s.recovered, s.complaints = true, nil
	}
	switch r.what {
	case attempt:
		s.attempts++
		clear(s.over)
	case joined:
		s.ends = 0
		for id, t := range s.tallies {
			if t.attempt > 0 || s.attempts == 0 || !stateOfNodes[id] {
				delete(s.tallies, id)
			}
		}
	case some:
		for _, id := range r.clears {
			delete(s.tallies, id)
			s.over[id] = true
		}
	}
}

func (s *scan) count(k *known, warning, deadly bool) {
	if warning && k.pattern.strength != weak {
		return
	}
	t := s.tallies[k.id]
	if t == nil {
		t = &tally{attempt: s.attempts, record: s.records}
		s.tallies[k.id] = t
	}
	proof := false
	switch {
	case k.pattern.strength == weak, k.pattern.strength == guessed && s.over[k.id]:
		t.weak++
	case k.pattern.atLeast > 0 && !deadly:
		t.repeat(k.pattern, s.rec.raw)
	default:
		t.sure++
		proof = true
	}
	// Of all the sights the first, the first that ended a command and the last are kept; what proves takes the place of what does not.
	if t.first.line == 0 || proof && t.sure == 1 {
		t.first.set(s.rec.line, s.rec.raw, k)
	}
	if deadly && proof {
		if t.deadly++; t.deadly == 1 {
			t.killer.set(s.rec.line, s.rec.raw, k)
		}
	}
	if proof || t.sure == 0 {
		t.last.set(s.rec.line, s.rec.raw, k)
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
	h := readHead(string(raw[:min(len(raw), headSearch)]))
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
