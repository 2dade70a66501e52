package reader

import (
	"bytes"

	"k8slab/lab/symptom"
)

// A text that says that something failed, of which no finding says what, is neither failed nor healthy: it is undetermined.

// errorWords are how a record that nothing marks as an error looks like one, in normal form.
var errorWords = normalizeAll("error", "failed", "fatal", "fail:", "panic:", "exception", "aborted")

// errorLine is a record that looks like an error.
type errorLine struct {
	sight
	command string // whose run it belongs to
}

// keepError keeps the record at hand as the last that looks like an error, if nothing in it is known, and as the last that ended a command.
func (s *scan) keepError(rec *record, fatal, dismissed bool) {
	line := errorLine{sight{rec.line, bytes.Clone(rec.raw), &known{phrase: phrase{parts: []string{""}}}}, s.run.command}
	if fatal {
		s.ended = line
	}
	looks := isError(rec) || hasAny(rec.normal, errorWords) && !klogInfo.Match(rec.raw[:min(len(rec.raw), headerReach)])
	harmless := dismissed || hasAny(rec.normal, harmlessWords) || atStart.Match(rec.raw)
	if (fatal && !dismissed || looks && !harmless) && provesNothing(s.found) {
		s.unknown = line
	}
}

// undetermined is the line that says that something failed, if no finding says what.
func (s *scan) undetermined(found []symptom.Finding) *errorLine {
	for _, f := range found {
		if f.Level == symptom.Fail {
			return nil
		}
	}
	switch {
	case s.ends > 0:
		return &s.ended
	case len(found) == 0 && s.unknown.line > 0:
		return &s.unknown
	}
	return nil
}
