package reader

import "k8slab/lab/symptom"

// If nothing is known in a text that is somebody's complaint, its words still tell where to look. Such a text is a few pasted lines, an
// excerpt of a log that is mostly errors, or what ended a command. A guess never stands beside something known. It is a warning, and it
// cites only what a program printed.

// guessLimit is how many causes are guessed.
const guessLimit = 3

// guess names the causes to look at when nothing is known: those that the complaints resemble.
func (s *scan) guess() (ids []symptom.ID) {
	complaints := s.complaints.toGuessFrom(s.ends > 0)
	var texts []string
	var all []byte
	for _, c := range complaints {
		texts = append(texts, string(c.raw[:min(len(c.raw), sampleWidth)]))
		all = append(all, c.normal...)
	}
	like := learnedLikeness()
	for _, r := range like.causesOf(termsOf(texts...), all) {
		if len(ids) == guessLimit || r.id == symptom.Healthy && len(ids) == 0 && s.ends == 0 {
			break
		}
		if r.id == symptom.Healthy {
			continue
		}
		c := complaints[like.mostLike(r.id, texts)]
		t := &tally{weak: 1, onlyGuessed: true}
		if !isProse(c.raw) {
			t.first.set(c.line, c.raw, wholeRecord)
		}
		s.tallies[r.id] = t
		ids = append(ids, r.id)
	}
	return ids
}
