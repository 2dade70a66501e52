package reader

import (
	"regexp"
	"strings"
	"time"
)

// logHeader is what a record's first bytes say about it. All of it may be missing.
type logHeader struct {
	time    string // as written
	node    string // the journal's host name
	program string // the journal's unit or program
	clock   time.Duration
	timed   bool // clock is set: the time of day
}

var (
	journalHeader = regexp.MustCompile(`^\s*([A-Z][a-z]{2}\s+\d{1,2} \d{2}:\d{2}:\d{2}(?:\.\d+)?|` +
		`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})?) ` +
		`([A-Za-z0-9][A-Za-z0-9_.-]*) ([A-Za-z0-9@_.-]+)(?:\[\d+\])?: `)
	isoTime   = regexp.MustCompile(`\d{4}[-/]\d{2}[-/]\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?`)
	klogTime  = regexp.MustCompile(`\b[IWEF](\d{4} \d{2}:\d{2}:\d{2}(?:\.\d+)?)`)
	clockTime = regexp.MustCompile(`(\d{2}):(\d{2}):(\d{2})`)
)

// headerReach is how far into a record its time is looked for: JSON puts it after the level.
const headerReach = 160

// Header is what the beginning of a line says: its time as written there, and of a journal's line the host and the unit or program. Each is
// "" if it does not say so.
func Header(line string) (time, node, program string) {
	h := readHeader([]byte(line))
	return h.time, h.node, h.program
}

func readHeader(raw []byte) logHeader {
	var h logHeader
	start := string(raw[:min(len(raw), headerReach)])
	if m := journalHeader.FindStringSubmatch(start); m != nil {
		h.time, h.node, h.program = m[1], m[2], m[3]
	} else if t := isoTime.FindString(start); t != "" {
		h.time = t
	} else if m := klogTime.FindStringSubmatch(start); m != nil {
		h.time = m[1]
	}
	if m := clockTime.FindStringSubmatch(h.time); m != nil {
		clock, err := time.ParseDuration(strings.Join([]string{m[1], "h", m[2], "m", m[3], "s"}, ""))
		h.clock, h.timed = clock, err == nil
	}
	return h
}
