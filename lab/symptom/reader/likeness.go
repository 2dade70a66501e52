package reader

import (
	_ "embed"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8slab/lab/symptom"
)

// There is no end of messages, but they use the same words. So a message without a known phrase still resembles the phrases and the texts
// of testdata/corpus. What a text resembles is only a guess or a suspicion.

// learned has the words of the texts of testdata/corpus that the judge was made with. Its first line lists the causes, each with the
// number of its texts. Each further line has a term and the causes whose texts have it: the index in the first line and the number of
// texts, unless that is one. TestResemblance writes it.
//
//go:embed resemblance.txt
var learned string

// likeness knows how much each term speaks for which causes.
type likeness map[string][]vote

// vote is what a term adds for a cause.
type vote struct {
	id     symptom.ID
	weight float64
}

// counts are how often terms were seen beside causes.
type counts struct {
	texts map[symptom.ID]float64
	terms map[string]map[symptom.ID]float64
}

func newCounts() *counts {
	return &counts{texts: map[symptom.ID]float64{}, terms: map[string]map[symptom.ID]float64{}}
}

// add counts the terms of one text, or phrase, of a cause.
func (c *counts) add(id symptom.ID, terms []string) {
	c.texts[id]++
	for _, t := range terms {
		if c.terms[t] == nil {
			c.terms[t] = map[symptom.ID]float64{}
		}
		c.terms[t][id]++
	}
}

// learnedLikeness is learned and the reader's own phrases, weighed once, when first used.
var learnedLikeness = sync.OnceValue(func() likeness {
	c := readCounts(learned)
	for _, k := range words().all {
		if k.kind == ofCause {
			c.add(k.id, termsOf(k.pattern.phrase))
		}
	}
	return c.weigh()
})

// readCounts reads what learned holds.
func readCounts(text string) *counts {
	c := newCounts()
	var ids []symptom.ID
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(ids) == 0 {
			for _, f := range fields {
				id, n, _ := strings.Cut(f, "*")
				ids = append(ids, symptom.ID(id))
				c.texts[symptom.ID(id)] = number(n)
			}
			continue
		}
		by := map[symptom.ID]float64{}
		for _, f := range fields[1:] {
			which, n, _ := strings.Cut(f, "*")
			if i, err := strconv.Atoi(which); err == nil && i < len(ids) {
				by[ids[i]] = number(n)
			}
		}
		c.terms[fields[0]] = by
	}
	return c
}

// number is the number in s, 1 if there is none.
func number(s string) float64 {
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		return n
	}
	return 1
}

// weigh turns counts into weights. The weight of a term for a cause grows with the share of the term's texts that are of the cause, with
// how often it was seen, and with how few causes share it.
func (c *counts) weigh() likeness {
	const prior = 3 // texts that are added to those of each cause, so that a few texts do not weigh too much
	like := make(likeness, len(c.terms))
	for term, by := range c.terms {
		total, sights := 0.0, 0.0
		for id, n := range by {
			total += n / math.Sqrt(c.texts[id]+prior)
			sights += n
		}
		rare := math.Log((float64(len(c.texts))+1)/(float64(len(by))+0.5)) * sights / (sights + 1)
		for id, n := range by {
			share := n / math.Sqrt(c.texts[id]+prior) / total
			like[term] = append(like[term], vote{id, rare * math.Pow(share, 1.5)})
		}
	}
	return like
}

// resemblance is a cause and the score of a text for it.
type resemblance struct {
	id    symptom.ID
	score float64
}

// hintWeight is what the first of the hints adds to a cause's score; later hints add less, the last almost nothing.
const hintWeight = 4

// causesOf are the causes that a text's terms, and the hints in its normal form, speak for, the highest score first.
func (l likeness) causesOf(terms []string, normal []byte) []resemblance {
	scores := map[symptom.ID]float64{}
	for _, t := range terms {
		for _, s := range l[t] {
			scores[s.id] += s.weight
		}
	}
	for i, h := range hintWords() {
		if hasAny(normal, h) {
			scores[hints[i].id] += hintWeight * (1 - float64(i)/float64(len(hints)))
		}
	}
	var all []resemblance
	for id, score := range scores {
		all = append(all, resemblance{id, score})
	}
	slices.SortFunc(all, func(a, b resemblance) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return strings.Compare(string(a.id), string(b.id))
	})
	return all
}

// mostLike is the index of the text with the highest score for the cause.
func (l likeness) mostLike(id symptom.ID, texts []string) int {
	best, most := 0, -1.0
	for i, text := range texts {
		score := 0.0
		for _, t := range termsOf(text) {
			for _, s := range l[t] {
				if s.id == id {
					score += s.weight
				}
			}
		}
		if score > most {
			best, most = i, score
		}
	}
	return best
}

// termsOf are the words of texts and the pairs of words that follow one another, each once. Numbers count when they may be ports or codes.
func termsOf(texts ...string) []string {
	seen := map[string]bool{}
	var terms []string
	add := func(t string) {
		if !seen[t] {
			seen[t] = true
			terms = append(terms, t)
		}
	}
	for _, text := range texts {
		for line := range strings.Lines(text) {
			before := ""
			for _, w := range wordsOf(line) {
				add(w)
				if before != "" {
					add(before + " " + w)
				}
				before = w
			}
		}
	}
	return terms
}

// wordsOf are the words of a line, without the names and numbers of one machine or moment.
func wordsOf(line string) []string {
	fields := strings.FieldsFunc(strings.ReplaceAll(strings.ToLower(line), "'", ""), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	return slices.DeleteFunc(fields, func(w string) bool {
		digits := 0
		for _, c := range w {
			if c >= '0' && c <= '9' {
				digits++
			}
		}
		telling := digits == 0 || digits == len(w) && len(w) >= 3 && len(w) <= 5 || digits <= 2 && len(w)-digits >= 2 && len(w) < 12
		return len(w) < 2 || !telling
	})
}
