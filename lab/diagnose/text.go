package diagnose

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8slab/lab/event"
	"k8slab/lab/symptom"
)

const (
	defaultWidth = 80
	leastWidth   = 36
	mostWidth    = 160 // longer lines are hard to read
	gutter       = 14  // what a paragraph is, before it

	mostSightings = 3 // of a cause
	mostLines     = 3 // of a piece of evidence
	mostEntries   = 8 // of a list
)

// The terminal's styles.
const (
	badStyle     = "1;31"
	warnStyle    = "1;33"
	goodStyle    = "1;32"
	commandStyle = "36"
	quietStyle   = "2"
)

// WriteText writes the report for a person: for each cause what is wrong, on which node, the evidence and what to do; then what each
// brought about, what else was seen, what could not be read, and the next command. Lines are at most width columns; 0 means unknown.
func WriteText(w io.Writer, r Report, width int, colour bool) error {
	r = shown(r)
	causes := causesOf(r.Findings)
	if width <= 0 {
		width = defaultWidth
	}
	t := &textView{width: min(max(width, leastWidth), mostWidth), colour: colour}
	said, tone := verdict(r, causes)
	t.heading(said, scope(r), toneStyle(tone))
	for _, c := range causes {
		t.gap()
		t.cause(c, r.Source == live || r.Source == "")
	}
	t.around(r)
	t.gap()
	t.entry("next", quietStyle, next(r, causes), true)
	_, err := w.Write(t.out.Bytes())
	return err
}

type textView struct {
	out    bytes.Buffer
	width  int
	colour bool
}

func toneStyle(tone string) string {
	return map[string]string{"good": goodStyle, "warn": warnStyle, "bad": badStyle}[tone]
}

// heading is the verdict, then what it is about.
func (t *textView) heading(said, scope, style string) {
	if event.Columns(said)+1+event.Columns(scope) <= t.width {
		fmt.Fprintln(&t.out, t.paint(style, said), scope)
		return
	}
	for _, line := range fold(said, t.width, false) {
		fmt.Fprintln(&t.out, t.paint(style, line))
	}
	for _, line := range fold(scope, t.width, false) {
		fmt.Fprintln(&t.out, line)
	}
}

func (t *textView) cause(c *cause, ours bool) {
	label, style := "FAIL", badStyle
	if !c.Failed() {
		label, style = "WARN", warnStyle
	}
	for i, line := range fold(c.title(), t.width-gutter, false) {
		if i > 0 {
			label = ""
		}
		t.line(label, style, t.paint("1", line))
	}
	t.entry("", "", c.Meaning, false)
	for i, e := range c.Evidence {
		if i == mostSightings {
			t.entry("", "", fmt.Sprintf("and %d more (-o json has all)", len(c.Evidence)-i), false)
			break
		}
		t.sighting(e)
	}
	t.entry("fix", quietStyle, c.Hint, true)
	for _, n := range c.Notes {
		t.entry("site", quietStyle, n.Text+" (rule "+n.Rule+")", true)
	}
	if ours && c.Repairable {
		t.entry("repair", quietStyle, "`labctl repair` can fix it", true)
	} else if ours {
		t.entry("repair", quietStyle, "not repaired automatically", true)
	}
	for _, d := range c.Consequences {
		t.entry("consequence", quietStyle, d.title()+", because of "+string(d.BecauseOf), false)
	}
	for _, d := range c.Instead {
		t.entry("alternatively", quietStyle, d.title()+", which looks similar", false)
	}
}

func (t *textView) sighting(e sighting) {
	said := strings.TrimSpace(e.Where() + " " + e.When())
	if said != "" && e.Text != "" {
		said += ": "
	}
	lines := fold(said+e.Text, t.width-gutter, false)
	if len(lines) > mostLines {
		lines = lines[:mostLines]
		lines[mostLines-1] = chopped(lines[mostLines-1], t.width-gutter-1)[0] + "…"
	}
	for i, line := range lines {
		label := ""
		if i == 0 {
			label = "evidence"
		}
		t.line(label, quietStyle, line)
	}
}

// around is what else was seen, and what was not.
func (t *textView) around(r Report) {
	var shut, learners []string
	for _, c := range closedPorts(r.Ports) {
		if !failing(r.Findings, c.To) { // what fails there is said, and closed ports are a part of it
			shut = append(shut, c.String())
		}
	}
	for _, m := range r.Members {
		if m.Learner {
			learners = append(learners, m.title()+" "+m.progress())
		}
	}
	t.list("ports", shut)
	t.list("learner", learners)
	t.list("unknown", r.Undetermined)
	t.list("unread", r.Unread)
}

func failing(findings []symptom.Finding, node string) bool {
	return slices.ContainsFunc(findings, func(f symptom.Finding) bool { return f.Node == node && f.Level != symptom.Warn })
}

func (t *textView) list(label string, entries []string) {
	if len(entries) > 0 {
		t.gap()
	}
	for i, e := range entries {
		if i == mostEntries && len(entries) > mostEntries+1 {
			t.entry("", "", fmt.Sprintf("and %d more (-o json has all)", len(entries)-i), false)
			return
		}
		t.entry(label, quietStyle, e, false)
	}
}

// entry writes a paragraph beside its label.
func (t *textView) entry(label, style, s string, commands bool) {
	commands = commands && strings.Count(s, "`")%2 == 0
	inside := false
	for i, line := range fold(s, t.width-gutter, commands) {
		if i > 0 {
			label = ""
		}
		if commands && t.colour {
			line, inside = t.commands(line, inside)
		}
		t.line(label, style, line)
	}
}

// commands colours what is between backticks, which then need not be there. A command may have begun on an earlier line.
func (t *textView) commands(line string, inside bool) (string, bool) {
	parts := strings.Split(line, "`")
	for i := range parts {
		if i > 0 {
			inside = !inside
		}
		if inside {
			parts[i] = t.paint(commandStyle, parts[i])
		}
	}
	return strings.Join(parts, ""), inside
}

func (t *textView) line(label, style, line string) {
	margin := strings.Repeat(" ", gutter-len(label))
	fmt.Fprintln(&t.out, strings.TrimRight(t.paint(style, label)+margin+line, " "))
}

func (t *textView) gap() { fmt.Fprintln(&t.out) }

func (t *textView) paint(style, s string) string {
	if !t.colour || style == "" || s == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}
