package reader

import (
	"slices"
	"strings"

	"k8slab/lab/symptom"
)

// suspect adds what the only cause found may be mistaken for, up to three findings in all: what the text resembles besides, and what the
// programs say the same of.
func (s *scan) suspect(found []symptom.Finding) []symptom.Finding {
	const enough = 3
	if len(found) == 0 || len(found) >= enough {
		return found
	}
	first := found[0]
	for _, id := range s.doubts(first.Symptom) {
		if len(found) >= enough {
			break
		}
		if !slices.ContainsFunc(found, func(f symptom.Finding) bool { return f.Symptom == id }) {
			found = append(found, symptom.Suspicion(id, first))
		}
	}
	return found
}

// doubts are the other causes that it may be, the likeliest first.
func (s *scan) doubts(id symptom.ID) []symptom.ID {
	texts := s.complaints.sample()
	var like []symptom.ID
	for _, r := range learnedLikeness().causesOf(termsOf(texts...), appendNormalized(nil, []byte(strings.Join(texts, " ")))) {
		if r.id != id && r.id != symptom.Healthy && len(like) < 3 {
			like = append(like, r.id)
		}
	}
	known := min(len(like), 1)
	if symptom.General(id) { // it hides its cause, which the text may still resemble
		known = len(like)
	}
	return slices.Concat(like[:known], symptom.MistakenFor(id), like[known:])
}
