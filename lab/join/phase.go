package join

import (
	"regexp"
	"strings"
)

// line is one line of kubeadm's output, taken apart.
type line struct {
	text  string // without the header of kubeadm's log lines
	level byte   // I, W, E or F of a log line; 0 for what kubeadm prints itself
	phase Phase  // kubeadm's phase that it tells of; "" when it tells of none
}

var (
	// klogHeader begins what kubeadm logs at -v: level, date, time, thread, source.
	klogHeader = regexp.MustCompile(`^([IWEF])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [^\]]+\] ?`)
	// phaseMark begins what kubeadm prints in a phase. [WARNING …] and [ERROR …] are none.
	phaseMark = regexp.MustCompile(`^\[([a-z][a-z0-9-]*)\]`)
	// failedPhase is kubeadm's last word: "error execution phase kubelet-start: …", with the parent's name before a slash.
	failedPhase = regexp.MustCompile(`error execution phase ([a-z][a-z0-9/-]*):`)
	// stackFrame is what kubeadm prints below an error at -v=5: the function, and below it the file.
	stackFrame = regexp.MustCompile(`^(?:\t\S+\.go:\d+|[\w./-]+(?:\.\(\*?[\w.]+\))?(?:\.[\w.\[\]]+)+)$`)
)

func parseLine(s string) line {
	l := line{text: strings.TrimRight(s, "\r\n")}
	if m := klogHeader.FindStringSubmatch(l.text); m != nil {
		l.level, l.text = m[1][0], l.text[len(m[0]):]
	}
	if m := failedPhase.FindStringSubmatch(l.text); m != nil {
		l.phase = Phase(m[1])
	} else if m := phaseMark.FindStringSubmatch(l.text); m != nil {
		l.phase = Phase(m[1])
	}
	return l
}

// readable tells whether a person wants to see the line: what kubeadm says, its warnings, and of its log what tells of etcd, of the
// discovery of the cluster and of failures, which kubeadm hides at its normal level (kubernetes#86936).
func (l line) readable() bool {
	switch {
	case strings.TrimSpace(l.text) == "" || stackFrame.MatchString(l.text):
		return false
	case l.level != 'I':
		return true
	}
	return l.phase == phaseEtcd || l.phase == phaseDiscovery || strings.Contains(l.text, "ailed") || strings.Contains(l.text, "error")
}

// progress tells whether the line is news of what kubeadm does, worth an event of its own.
func (l line) progress() bool {
	return l.readable() && (l.phase != "" || l.level > 'I' || strings.Contains(l.text, "ailed"))
}
