package reader

import (
	"bytes"
	"slices"
)

const (
	// fewRecords is the most that somebody pastes of a complaint.
	fewRecords = 6
	// excerptRecords is the most that an excerpt of a log has. If somebody cut it out for its errors, one record in excerptShare is an
	// error.
	excerptRecords, excerptShare = 40, 2
	// complaintLimit is how many complaints of a kind are kept.
	complaintLimit = 16
	// shortText is how many records a text has that is taken whole; of a longer one its complaints among the first sampleReach are.
	shortText, sampleReach = 8, 400
	// sampleLimit is how many records are kept to tell what the text resembles, and sampleWidth how much of each.
	sampleLimit, sampleWidth = 24, 600
	// pieceRecords is the most that a piece of a log has from which a cause is guessed although it says of nothing that it is an error.
	pieceRecords = 20
)

// complaints are what a guess is made from.
type complaints struct {
	records   int         // how many there were
	errors    int         // how many of the first ones are marked as errors
	kept      []complaint // errors, what ended a command, and all of a text's beginning that says nothing known
	failures  []complaint // the first that have words of failure
	opening   []string    // the first records, as they were read
	sampled   []string    // the first of those with words of failure or warning
	recovered bool        // something was seen to have passed
	reassured bool        // the text says that something works
	familiar  bool        // something in the text is known, or it says that something works
}

// add keeps a record for a guess, if it may be of use. found is what is known in it; dismissed says that some of that is harmless here.
func (c *complaints) add(rec *record, found []find, fatal, dismissed bool) {
	c.records++
	c.addSample(rec)
	c.familiar = c.familiar || dismissed || len(found) > 0
	if dismissed {
		return
	}
	marked := provesNothing(found) && c.records <= excerptRecords && isError(rec) && !hasAny(rec.normal, harmlessWords)
	if marked {
		c.errors++
	}
	if len(c.kept) < complaintLimit && (fatal || marked || c.records <= fewRecords && len(found) == 0) {
		c.kept = append(c.kept, complaint{rec.line, bytes.Clone(rec.normal), bytes.Clone(rec.raw), marked || fatal})
	}
}

// addSample keeps a record that may tell what the text resembles.
func (c *complaints) addSample(rec *record) {
	if c.records > sampleReach {
		return
	}
	raw := rec.raw[:min(len(rec.raw), sampleWidth)]
	if c.records <= shortText {
		c.opening = append(c.opening, string(raw))
	}
	fails := hasAny(rec.normal, failureWords)
	if hasAny(rec.normal, reassuring) {
		c.familiar, c.reassured = true, true
	} else if fails && len(c.failures) < complaintLimit && !hasAny(rec.normal, harmlessWords) && klogLevel(raw) != 'I' {
		c.failures = append(c.failures, complaint{line: rec.line, normal: bytes.Clone(rec.normal), raw: bytes.Clone(raw)})
	}
	if len(c.sampled) < sampleLimit && (fails || bytes.Contains(rec.normal, warn)) {
		c.sampled = append(c.sampled, string(raw))
	}
}

// provesNothing reports whether what is known in a record is too weak to prove a cause.
func provesNothing(found []find) bool {
	return !slices.ContainsFunc(found, func(f find) bool {
		return f.known.kind != ofCause || f.known.pattern.strength != weak && f.known.pattern.atLeast == 0
	})
}

// recover forgets the complaints before a sign that they have passed.
func (c *complaints) recover() { c.recovered, c.kept = true, nil }

// sample is what the text is compared by.
func (c *complaints) sample() []string {
	if c.records <= shortText || len(c.sampled) == 0 {
		return c.opening
	}
	return c.sampled
}

// isPasted reports whether the text is only a few lines that somebody pasted, and not of a log: logs also tell of failures that pass.
func (c *complaints) isPasted() bool {
	if c.records > fewRecords || c.recovered || c.reassured {
		return false
	}
	return !slices.ContainsFunc(c.kept, func(k complaint) bool { return readHeader(k.raw).time != "" })
}

// isExcerpt reports whether the text is a piece of a log that somebody cut out because of its errors.
func (c *complaints) isExcerpt() bool {
	return !c.recovered && c.records <= excerptRecords && c.errors*excerptShare >= c.records && c.errors > 0
}

// toGuessFrom are the complaints to guess from: none if the machine may be healthy. failed says that a command failed.
func (c *complaints) toGuessFrom(failed bool) (out []complaint) {
	if !failed && !c.isPasted() && !c.isExcerpt() {
		if c.records > pieceRecords || c.recovered || c.familiar {
			return nil
		}
		for _, f := range c.failures {
			if isHinted(f.normal) {
				out = append(out, f)
			}
		}
		return out
	}
	for _, k := range c.kept {
		if (k.isError || hasAny(k.normal, failureWords)) && !hasAny(k.normal, harmlessWords) {
			out = append(out, k)
		}
	}
	return out
}
