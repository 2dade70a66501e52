package reader

import (
	"slices"
	"strings"
	"testing"

	"k8slab/lab/symptom"
)

// covers reports whether each text with the phrase b also has the phrase a: the parts of a are in those of b, no further apart than a
// allows.
func covers(a, b phrase) bool {
	part, at := 0, 0 // what of b is not used yet
	room := 0        // how far the gap at hand reaches in b, at the most
	for i, p := range a.parts {
		for {
			if part == len(b.parts) {
				return false
			}
			if j := strings.Index(b.parts[part][at:], p); j >= 0 {
				room, at = room+j, at+j+len(p)
				break
			}
			room += len(b.parts[part]) - at + gapLimit
			part, at = part+1, 0
		}
		if i > 0 && room > gapLimit {
			return false
		}
		room = 0
	}
	return true
}

// atLeastAs reports whether a proves the same cause as b does, at least as strongly and under no more conditions. Only weak patterns
// count in preflight's warnings, so no other can replace them.
func atLeastAs(a, b *known) bool {
	p, q := a.pattern, b.pattern
	return a.id == b.id && (p.strength == q.strength || p.strength > q.strength && q.strength != weak) &&
		p.atLeast == q.atLeast && p.weighed == q.weighed && (len(p.unless) == 0 || slices.Equal(p.unless, q.unless))
}

func TestNoPhraseIsCovered(t *testing.T) {
	all := causePhrases()
	for _, b := range all {
		for _, a := range all {
			if a != b && atLeastAs(a, b) && covers(a.phrase, b.phrase) {
				t.Errorf("%s: %q finds nothing that %q does not find: delete it", b.id, b.pattern.phrase, a.pattern.phrase)
				break
			}
		}
	}
}

// A phrase under two causes, or twice under one with two strengths, says that nobody has decided what it means.
func TestNoPhraseIsThereTwice(t *testing.T) {
	seen := map[string]symptom.ID{}
	for _, k := range causePhrases() {
		key := strings.Join(k.parts, "*")
		if other, ok := seen[key]; ok {
			t.Errorf("%q shows both %s and %s: the corpus must decide", k.pattern.phrase, other, k.id)
		}
		seen[key] = k.id
	}
}

// causePhrases are the phrases that show causes, ready to match.
func causePhrases() (all []*known) {
	for i := range words().all {
		if words().all[i].kind == ofCause {
			all = append(all, &words().all[i])
		}
	}
	return all
}

func TestEveryCauseHasPhrases(t *testing.T) {
	for _, s := range symptom.All() {
		if s.Measured {
			continue
		}
		if s.ID != symptom.Healthy && len(patternsOf(s.ID)) == 0 {
			t.Errorf("%s: nothing shows it", s.ID)
		}
	}
}

// TestPhrasesAreParticular guards against phrases that are so short that any text has them: normalized text has no spaces between words.
func TestPhrasesAreParticular(t *testing.T) {
	for _, k := range words().all {
		total := 0
		for _, part := range k.parts {
			total += len(part)
		}
		if total < 5 {
			t.Errorf("%s: phrase %q is too short", k.id, k.pattern.phrase)
		}
	}
}
