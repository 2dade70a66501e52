package reader

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// A text is a timeline of runs of commands. What a run said is past when a later run of the same command got further, and of the errors of
// several runs the last counts. A run begins where its command was typed, or with the first words that the program prints.

// run is the run of a command that is being read.
type run struct {
	command string // without options; "" before the first
	number  int
	spoke   bool // it printed anything
	failed  bool // and complained
}

// prompt finds a command that was typed at a shell.
var prompt = regexp.MustCompile(`^\s*(?:\[?[\w.-]+@[\w.-]+[^\]#$]{0,80}\]?)?[#$] +(?:sudo +)?([a-z][\w./-]*(?: .*)?)$`)

// commandOf is the command in a line that was typed at a shell, without what may differ when it is run again; "" for other lines. kubeadm's
// runs are all of one kind: the next may have another token, or begin anew.
func commandOf(line []byte) string {
	if m := bytes.IndexAny(line[:min(len(line), headerReach)], "#$"); m < 0 {
		return ""
	}
	m := prompt.FindSubmatch(line)
	if m == nil {
		return ""
	}
	words := strings.Fields(string(m[1]))
	words[0] = words[0][strings.LastIndexByte(words[0], '/')+1:]
	if words[0] == kubeadm {
		return kubeadm
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w[0] == '-' }), " ")
}

const kubeadm = "kubeadm"

// begin ends the run at hand and begins another.
func (s *scan) begin(command string) {
	s.endRun()
	s.run = run{command: command, number: s.run.number + 1}
}

// note keeps how the run at hand is doing.
func (s *scan) note(rec *record, fatal, dismissed bool) {
	complains := s.keepError(rec, fatal, dismissed) || fatal || slices.ContainsFunc(s.found, find.states)
	s.run.spoke, s.run.failed = true, s.run.failed || complains
	if s.calm++; complains {
		s.calm = 0
	}
}

// retryWords are how a program says that it will try again, in normal form.
var retryWords = normalizeAll("will retry", "will try again", "retrying", "may retry", "not yet", "retry in", "try again in")

// longCalm is how many records without a complaint show that a program which tried again succeeded.
const longCalm = 2

// endOfText takes back what was tried again and not complained of since.
func (s *scan) endOfText() {
	s.endRun()
	if s.calm >= longCalm {
		s.takeBack(func(t *tally) bool { return t.sure > 0 && t.retried == t.sure && t.fatal == 0 })
	}
}

// endRun takes back what earlier runs of the command at hand said, if this one did not complain.
func (s *scan) endRun() {
	if s.run.command == "" || s.run.command == kubeadm || !s.run.spoke || s.run.failed {
		return
	}
	s.takeBack(func(t *tally) bool { return t.command == s.run.command && t.run < s.run.number })
	if s.unknownOf == s.run.command {
		s.unknown.line = 0
	}
}

// passedPreflight takes back what stopped earlier runs of kubeadm before they changed anything.
func (s *scan) passedPreflight() {
	s.preflight = false
	s.takeBack(func(t *tally) bool { return t.fatal > 0 && t.inPreflight && t.run < s.run.number })
}

// recap finds the row of a host in Ansible's summary.
var recap = regexp.MustCompile(`^\s*(\S+)\s*:\s*ok=\d+.*unreachable=0\s+failed=0`)

// hostPassed takes back what tasks of Ansible said of a host that came through in the end.
func (s *scan) hostPassed(row []byte) {
	m := recap.FindSubmatch(row)
	if m == nil {
		return
	}
	host := []byte("[" + string(m[1]) + "]")
	s.takeBack(func(t *tally) bool { return bytes.Contains(t.first.raw, host) && bytes.Contains(t.last.raw, host) })
}

// takeBack forgets the causes of which all that was seen is past.
func (s *scan) takeBack(past func(*tally) bool) {
	for id, t := range s.tallies {
		if past(t) {
			delete(s.tallies, id)
			s.ends = 0
			s.complaints.recover()
		}
	}
}

// seenIn notes which run said the record at hand.
func (t *tally) seenIn(r run, preflight, first bool) {
	if first {
		t.command = r.command
	} else if t.command != r.command {
		t.command = ""
	}
	t.run, t.inPreflight = r.number, preflight
}
