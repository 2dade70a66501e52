package reader

import "k8slab/lab/symptom"

// A text that says that something failed, of which no finding says what, is neither failed nor healthy: it is undetermined.

// errorWords are how a record that nothing marks as an error looks like one, in normal form.
var errorWords = normalizeAll("error", "failed", "fatal", "fail:", "panic:", "exception", "aborted")

// wholeRecord is what is known of a record of which all is to be cited.
var wholeRecord = &known{phrase: phrase{parts: []string{""}}}

// keepError keeps the record at hand as the last that looks like an error, if nothing in it is known, and as the last that ended a command.
// It reports whether it looks like one.
func (s *scan) keepError(rec *record, fatal, dismissed bool) (looks bool) {
	if fatal {
		s.ended.set(rec.line, rec.raw, wholeRecord)
	}
	switch klogLevel(rec.raw) {
	case 'I':
	case 'E', 'F':
		looks = true
	default:
		looks = hasAny(rec.normal, errorWords) || hasAny(rec.normal, errorMarks)
	}
	looks = looks && !hasAny(rec.normal, harmlessWords) && !atStart.Match(rec.raw)
	if (fatal || looks) && !dismissed && provesNothing(s.found) {
		s.unknown.set(rec.line, rec.raw, wholeRecord)
		s.unknownOf = s.run.command
	}
	return looks
}

// undetermined is the line that says that something failed, if no finding says what.
func (s *scan) undetermined(found []symptom.Finding) *sight {
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
