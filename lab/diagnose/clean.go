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
	nameMost = 80
	textMost = 1000
	hintMost = 2500
)

// shown is the report as the views may show it. Most of its texts come from machines that are broken and perhaps hostile: every one becomes
// a single line of valid UTF-8 of bounded length, without a character that moves a cursor or turns the direction of text, and without what
// looks like a secret. Every number is one.
func shown(r Report) Report {
	r.Lab, r.Source, r.Took = shownName(r.Lab), shownText(r.Source, 2*nameMost), shownNumber(r.Took)
	r.Findings = slices.Clone(r.Findings)
	for i := range r.Findings {
		r.Findings[i] = shownFinding(r.Findings[i])
	}
	r.Nodes = slices.Clone(r.Nodes)
	for i := range r.Nodes {
		n := &r.Nodes[i]
		for _, s := range []*string{&n.Name, &n.Role, &n.IP, &n.Machine, &n.Ready, &n.Kubelet, &n.Runtime, &n.Version} {
			*s = shownName(*s)
		}
		for _, f := range []*float64{&n.ClockOffset, &n.DiskFree, &n.MemoryFree, &n.FsyncP99} {
			*f = shownNumber(*f)
		}
		n.SSH = shownText(n.SSH, textMost)
	}
	r.Ports = slices.Clone(r.Ports)
	for i := range r.Ports {
		p := &r.Ports[i]
		p.From, p.To, p.Proto, p.Result, p.Millis = shownName(p.From), shownName(p.To), shownName(p.Proto), shownName(p.Result), shownNumber(p.Millis)
	}
	r.Members = slices.Clone(r.Members)
	for i := range r.Members {
		m := &r.Members[i]
		m.Name, m.ID, m.Node, m.PeerURL, m.Rate = shownName(m.Name), shownName(m.ID), shownName(m.Node), shownText(m.PeerURL, 2*nameMost), shownNumber(m.Rate)
		m.Error, m.Alarms = shownText(m.Error, textMost), shownTexts(m.Alarms, shownName)
	}
	r.Attempts = slices.Clone(r.Attempts)
	for i := range r.Attempts {
		r.Attempts[i] = shownAttempt(r.Attempts[i])
	}
	r.Undetermined = shownTexts(r.Undetermined, func(s string) string { return shownText(s, textMost) })
	r.Unread = shownTexts(r.Unread, func(s string) string { return shownText(s, textMost) })
	return r
}

func shownFinding(f symptom.Finding) symptom.Finding {
	f.Symptom, f.BecauseOf = symptom.ID(shownName(string(f.Symptom))), symptom.ID(shownName(string(f.BecauseOf)))
	f.Node, f.Detail = shownName(f.Node), shownName(f.Detail)
	f.Meaning, f.Hint = shownText(f.Meaning, textMost), shownText(f.Hint, hintMost)
	f.Evidence = slices.Clone(f.Evidence)
	for i := range f.Evidence {
		e := &f.Evidence[i]
		e.Source, e.Time, e.Text = shownText(e.Source, 2*nameMost), shownName(e.Time), shownText(e.Text, textMost)
		e.Rule = shownName(e.Rule)
	}
	f.Rule, f.Notes = shownName(f.Rule), slices.Clone(f.Notes)
	for i := range f.Notes {
		f.Notes[i] = symptom.Note{Text: shownText(f.Notes[i].Text, hintMost), Rule: shownName(f.Notes[i].Rule)}
	}
	return f
}

func shownAttempt(a AttemptRow) AttemptRow {
	a.Node, a.Symptom, a.Evidence = shownName(a.Node), symptom.ID(shownName(string(a.Symptom))), shownText(a.Evidence, textMost)
	a.Elapsed = max(0, shownNumber(a.Elapsed))
	a.Phases = slices.Clone(a.Phases)
	for i := range a.Phases {
		p := &a.Phases[i]
		p.Name, p.At, p.Elapsed = shownName(p.Name), max(0, shownNumber(p.At)), max(0, shownNumber(p.Elapsed))
	}
	return a
}

func shownTexts(all []string, one func(string) string) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = one(s)
	}
	return out
}

func shownName(s string) string { return shownText(s, nameMost) }

// shownText makes one line of s, of at most limit characters.
func shownText(s string, limit int) string {
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

func shownNumber(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}
