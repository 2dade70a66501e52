package diagnose

import (
	"bytes"
	"io"
	"path"
	"slices"
	"strings"

	"k8slab/lab/diagnose/siterule"
	"k8slab/lab/event"
	"k8slab/lab/symptom"
	"k8slab/lab/symptom/reader"
)

// siteScan finds a site's own causes in a text that is written to it. Its size does not depend on the text's.
type siteScan struct {
	rules  *siterule.Set
	source string
	line   []byte
	number int
	found  []symptom.Finding // in the order in which they were seen
}

// lineLimit is how much of a line is read.
const lineLimit = 64 << 10

func (s *siteScan) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, after, ends := bytes.Cut(rest, []byte("\n"))
		s.line = append(s.line, part[:min(len(part), lineLimit-len(s.line))]...)
		if rest = after; ends {
			s.judge()
		}
	}
	return len(p), nil
}

// findings are those of the whole text. node is where the text is from, unless it says so itself.
func (s *siteScan) findings(node string) []symptom.Finding {
	s.judge()
	for i := range s.found {
		if s.found[i].Node == "" {
			s.found[i].Node = node
		}
	}
	return s.found
}

// judge takes the line at hand.
func (s *siteScan) judge() {
	s.number++
	if len(s.line) == 0 {
		return
	}
	line := strings.TrimSuffix(string(s.line), "\r")
	s.line = s.line[:0]
	at, node, program := reader.Header(line)
	name := strings.TrimSuffix(path.Base(s.source), ".log")
	for _, p := range s.rules.Phrases() {
		if !p.Reads(name, program, strings.TrimSuffix(program, ".service")) || !p.Matches(line) {
			continue
		}
		known := s.rules.Lookup(p.Cause)
		s.add(symptom.Finding{
			Symptom: p.Cause, Level: p.Level, Node: node, Meaning: known.Meaning, Hint: known.Hint, Rule: p.Rule,
			Evidence: []symptom.Evidence{{Source: s.source, Line: s.number, Time: at, Text: cut(event.OneLine(event.Redact(line))), Rule: p.Rule}},
		})
	}
}

// add notes a finding. Of all the lines that show it the first and the last are kept.
func (s *siteScan) add(f symptom.Finding) {
	i := slices.IndexFunc(s.found, func(o symptom.Finding) bool { return o.Symptom == f.Symptom && o.Node == f.Node })
	if i < 0 {
		s.found = append(s.found, f)
		return
	}
	have := &s.found[i]
	have.Evidence = append(have.Evidence[:1], f.Evidence...)
	if f.Level == symptom.Fail {
		have.Level = symptom.Fail
	}
}

// siteFindings are what the site's rules find in a text.
func siteFindings(rules *siterule.Set, text, source, node string) []symptom.Finding {
	if len(rules.Phrases()) == 0 {
		return nil
	}
	s := &siteScan{rules: rules, source: source}
	_, _ = io.WriteString(s, text) // it has no errors
	return s.findings(node)
}

// noted adds what the site says beside the hints.
func noted(findings []symptom.Finding, rules *siterule.Set) {
	for i, f := range findings {
		if !f.Suspected() {
			findings[i].Notes = rules.Notes(f.Symptom)
		}
	}
}
