package diagnose

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
	"strings"
	"time"
)

var (
	//go:embed report.html
	pageText string
	//go:embed report.css
	pageStyle string
)

var pageTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"hint":    hintParts,
	"seconds": seconds,
	"clock":   clockText,
}).Parse(pageText))

// page is what the template shows.
type page struct {
	Style    template.CSS
	Title    string
	Verdict  string
	Tone     string // good, warn or bad
	Scope    string
	Time     time.Time
	Live     bool
	Causes   []*cause
	Further  []evidenceOf
	Unknown  []string
	Unread   []string
	Nodes    []nodeView
	Ports    *portMatrix // nil when no port was dialled
	Members  []memberView
	Sessions []session
	Next     string // "" when this page is the next step
}

// evidenceOf is the evidence of a finding that its card does not show.
type evidenceOf struct {
	Cause *cause
	Seen  []sighting
}

// cardSightings is how much evidence stands beside a root cause.
const cardSightings = 4

// WriteHTML writes the report as one page that needs nothing besides itself: no script, no style sheet, no picture.
func WriteHTML(w io.Writer, r Report) error {
	r = shown(r)
	causes := causesOf(r.Findings)
	p := page{
		Style: template.CSS(pageStyle), Scope: scope(r), Time: r.Time, Live: r.Source == live || r.Source == "",
		Causes: causes, Further: furtherEvidence(causes), Unknown: r.Undetermined, Unread: r.Unread,
		Nodes: nodeViews(r), Ports: matrixOf(r),
		Members: memberViews(r.Members), Sessions: sessionsOf(r.Attempts),
	}
	p.Verdict, p.Tone = verdict(r, causes)
	if p.Live && p.Tone != "good" {
		p.Next = next(r, causes)
	}
	if p.Title = strings.TrimSuffix(p.Verdict, "."); len(causes) > 0 {
		p.Title = place(causes[0])
	}
	if r.Lab != "" {
		p.Title += " – lab " + r.Lab
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

func furtherEvidence(causes []*cause) []evidenceOf {
	var all []evidenceOf
	for _, c := range causes {
		if len(c.Evidence) > cardSightings {
			all = append(all, evidenceOf{c, c.Evidence[cardSightings:]})
		}
		for _, d := range c.Consequences {
			if len(d.Evidence) > 0 {
				all = append(all, evidenceOf{d, d.Evidence})
			}
		}
	}
	return all
}

// Shown is the evidence for the cause's card.
func (c *cause) Shown() []sighting { return c.Evidence[:min(len(c.Evidence), cardSightings)] }

// Unshown is how much more there is.
func (c *cause) Unshown() int { return len(c.Evidence) - len(c.Shown()) }

// hintPart is prose or a command.
type hintPart struct {
	Text    string
	Command bool
}

// hintParts takes a hint apart at its backticks.
func hintParts(s string) []hintPart {
	if strings.Count(s, "`")%2 != 0 {
		return []hintPart{{Text: s}}
	}
	var parts []hintPart
	for i, part := range strings.Split(s, "`") {
		if part != "" {
			parts = append(parts, hintPart{part, i%2 == 1})
		}
	}
	return parts
}

func clockText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format("2006-01-02 15:04:05 MST")
}
