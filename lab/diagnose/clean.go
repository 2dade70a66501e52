package diagnose

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"k8slab/lab/event"
	"k8slab/lab/symptom"
)

// The longest texts that a view shows, in characters. A log can hold lines of any length, and a machine a name of any kind.
const (
	nameLimit = 80
	textLimit = 1000
	hintLimit = 2500
)

// shown is the report as the views may show it. Most of its texts come from machines that are broken and perhaps hostile: every one becomes
// a single line of valid UTF-8 of bounded length, without a character that moves a cursor or turns the direction of text, and without what
// looks like a secret. Every number is one.
func shown(r Report) Report {
	r.Lab, r.Source, r.Took = name(r.Lab), text(r.Source, 2*nameLimit), number(r.Took)
	r.Findings = slices.Clone(r.Findings)
	for i := range r.Findings {
		r.Findings[i] = shownFinding(r.Findings[i])
	}
	r.Nodes = slices.Clone(r.Nodes)
	for i := range r.Nodes {
		n := &r.Nodes[i]
		for _, s := range []*string{&n.Name, &n.Role, &n.IP, &n.Machine, &n.Ready, &n.Kubelet, &n.Runtime, &n.Version} {
			*s = name(*s)
		}
		for _, f := range []*float64{&n.ClockOffset, &n.DiskFree, &n.MemoryFree, &n.FsyncP99} {
			*f = number(*f)
		}
		n.SSH = text(n.SSH, textLimit)
	}
	r.Ports = slices.Clone(r.Ports)
	for i := range r.Ports {
		p := &r.Ports[i]
		p.From, p.To, p.Proto, p.Result, p.Millis = name(p.From), name(p.To), name(p.Proto), name(p.Result), number(p.Millis)
	}
	r.Members = slices.Clone(r.Members)
	for i := range r.Members {
		m := &r.Members[i]
		m.Name, m.ID, m.Node, m.PeerURL, m.Rate = name(m.Name), name(m.ID), name(m.Node), text(m.PeerURL, 2*nameLimit), number(m.Rate)
		m.Error, m.Alarms = text(m.Error, textLimit), texts(m.Alarms, name)
	}
	r.Attempts = slices.Clone(r.Attempts)
	for i := range r.Attempts {
		r.Attempts[i] = shownAttempt(r.Attempts[i])
	}
	r.Unread = texts(r.Unread, func(s string) string { return text(s, textLimit) })
	return r
}

func shownFinding(f symptom.Finding) symptom.Finding {
	f.Symptom, f.BecauseOf = symptom.ID(name(string(f.Symptom))), symptom.ID(name(string(f.BecauseOf)))
	f.Node, f.Detail = name(f.Node), name(f.Detail)
	f.Meaning, f.Hint = text(f.Meaning, textLimit), text(f.Hint, hintLimit)
	f.Evidence = slices.Clone(f.Evidence)
	for i := range f.Evidence {
		e := &f.Evidence[i]
		e.Source, e.Time, e.Text = text(e.Source, 2*nameLimit), name(e.Time), text(e.Text, textLimit)
	}
	return f
}

func shownAttempt(a AttemptRow) AttemptRow {
	a.Node, a.Symptom, a.Evidence = name(a.Node), symptom.ID(name(string(a.Symptom))), text(a.Evidence, textLimit)
	a.Elapsed = max(0, number(a.Elapsed))
	a.Phases = slices.Clone(a.Phases)
	for i := range a.Phases {
		p := &a.Phases[i]
		p.Name, p.At, p.Elapsed = name(p.Name), max(0, number(p.At)), max(0, number(p.Elapsed))
	}
	return a
}

func texts(all []string, one func(string) string) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = one(s)
	}
	return out
}

func name(s string) string { return text(s, nameLimit) }

// text makes one line of s, of at most limit characters.
func text(s string, limit int) string {
	// What is taken out below leaves enough of a text this long, and nobody waits for the cleaning of a whole log.
	if most := 8 * limit; len(s) > most {
		s = s[:most]
	}
	s = event.Redact(event.OneLine(s))
	var b strings.Builder
	n, marks := 0, 0
	for _, r := range strings.TrimSpace(s) {
		if marks++; !unicode.Is(unicode.M, r) {
			marks = 0
		}
		if marks > 2 { // a pile of accents covers the lines around it
			continue
		}
		if n++; n > limit {
			return b.String() + "…"
		}
		b.WriteRune(r)
	}
	return b.String()
}

func number(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}
