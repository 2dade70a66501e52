package reader

import (
	"bytes"
)

const (
	// wrapWidth is the shortest line that may have been wrapped: text is wrapped near the width of a page or terminal.
	wrapWidth = 50
	// recordLimit is the longest record that is joined from wrapped lines, in bytes.
	recordLimit = 4 << 10
)

// record is one message, from the line that begins it to the last one that it was wrapped onto.
type record struct {
	line   int    // number of its first line, from 1
	normal []byte // normal form, ends in '\n'
	raw    []byte // as it was read, wrapped lines joined by a space
	last   int    // length of its last line
}

func (r *record) reset(line int) {
	r.line, r.normal, r.raw, r.last = line, r.normal[:0], r.raw[:0], 0
}

// continuesIn reports whether line continues the record: it does not begin a message of its own, and the line before ends in a colon or was
// long enough to have been wrapped and does not end a sentence, after which only an indented line goes on.
func (r *record) continuesIn(line []byte) bool {
	if len(r.raw) == 0 || len(r.raw)+len(line) >= recordLimit || begins(line) {
		return false
	}
	sentence := r.raw[len(r.raw)-1] == '.' && !bytes.HasSuffix(r.raw, []byte("..")) && line[0] != ' ' && line[0] != '\t'
	return r.raw[len(r.raw)-1] == ':' || r.last >= wrapWidth && !sentence
}

func (r *record) add(line []byte) {
	r.normal = appendNormalized(r.normal, line)
	if len(r.raw) > 0 {
		r.raw = append(r.raw, ' ')
	}
	r.raw = append(r.raw, line...)
	r.last = len(line)
}

// begins reports whether a line begins a message of its own: with a time, a level, a bracketed phase, a bullet, a prompt or a JSON brace,
// or because it has columns.
func begins(line []byte) bool {
	s := bytes.TrimLeft(line, " \t")
	if len(s) == 0 || bytes.Contains(s, []byte("  ")) || bytes.IndexByte(s, '\t') >= 0 {
		return true
	}
	if hasClock(s[:min(len(s), clockReach)]) {
		return true
	}
	switch c := s[0]; {
	case c >= '0' && c <= '9':
		return len(s) > 4 && (isDigits(s[:4]) || s[2] == ':')
	case bytes.IndexByte([]byte("[{-*#$+|<>"), c) >= 0:
		return true
	case c == 'I' || c == 'W' || c == 'E' || c == 'F':
		if len(s) > 5 && isDigits(s[1:5]) && s[5] == ' ' {
			return true
		}
	}
	if len(s) > 5 && months[string(s[:3])] && s[3] == ' ' {
		return true
	}
	for _, p := range beginnings {
		if bytes.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// clockReach is how far into a line its time may stand: the date before it may be in any language.
const clockReach = 26

// hasClock reports whether there is a time of day, such as 10:02:03.
func hasClock(s []byte) bool {
	for i := 2; i+5 < len(s); i++ {
		if s[i] == ':' && s[i+3] == ':' && isDigits(s[i-2:i]) && isDigits(s[i+1:i+3]) && isDigits(s[i+4:i+6]) {
			return true
		}
	}
	return false
}

var months = map[string]bool{"Jan": true, "Feb": true, "Mar": true, "Apr": true, "May": true, "Jun": true, "Jul": true, "Aug": true,
	"Sep": true,
	"Oct": true, "Nov": true, "Dec": true}

var beginnings = [][]byte{[]byte("time="), []byte("level="), []byte("ts="), []byte("error"), []byte("Error"), []byte("ERROR"),
	[]byte("WARN"), []byte("FATA"), []byte("ERRO"), []byte("INFO"),
	[]byte("Warning"), []byte("Normal"), []byte("panic:"), []byte("fatal:"), []byte("E:"), []byte("W:"), []byte("Unfortunately"),
	[]byte("To see the stack"), []byte("TASK ["), []byte("PLAY ["), []byte("changed: ["), []byte("ok: [")}

func isDigits(s []byte) bool {
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// requester begins the line of `kubectl describe csr` that names who asks.
var requester = []byte("Requesting User:")

// headingOf is the subject that a later line with a state does not repeat: the unit whose page of `systemctl status` begins, or a
// certificate request that is described. It is "" for other lines.
func headingOf(line []byte) string {
	if bytes.HasPrefix(line, requester) {
		return "certificate request "
	}
	head, _, ok := bytes.Cut(line, []byte(".service - "))
	if !ok || len(head) > 60 {
		return ""
	}
	if i := bytes.LastIndexByte(head, ' '); i >= 0 {
		head = head[i+1:]
	}
	return string(head) + ".service"
}

var (
	named    = []byte("Name: ")
	assigned = []byte("Successfully assigned ")
	backOff  = []byte("Back-off restarting failed container")
)

// subjectOf is the pod that a page of `kubectl describe` or of events is about, as its first line or the scheduler names it, or "".
func subjectOf(line []byte) string {
	if bytes.HasPrefix(line, named) {
		return string(bytes.TrimSpace(line[len(named):]))
	}
	i := bytes.Index(line, assigned)
	if i < 0 {
		return ""
	}
	pod, _, _ := bytes.Cut(line[i+len(assigned):], []byte(" "))
	if j := bytes.LastIndexByte(pod, '/'); j >= 0 {
		pod = pod[j+1:]
	}
	return string(pod)
}

// saysReason reports whether a line of `kubectl describe pod` says why a container waits or ended.
func saysReason(line []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("Reason: "))
}

// saysState reports whether a line has the state of what a heading named.
func saysState(line []byte) bool {
	s := bytes.TrimLeft(line, " ")
	return bytes.HasPrefix(s, []byte("Active: ")) || bytes.HasPrefix(s, []byte("Status: "))
}

// unquoted removes the marks that quoting in mail and web pages puts before a line.
func unquoted(line []byte) []byte {
	line = bytes.TrimRight(line, "\r\n\t ")
	for len(line) > 1 && line[0] == '>' && (line[1] == ' ' || line[1] == '>') {
		line = bytes.TrimLeft(line[1:], " ")
	}
	return line
}
