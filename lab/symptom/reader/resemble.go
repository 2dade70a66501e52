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

// Wordings of a failure do not run out, but their words do: a message that no phrase knows resembles those that the phrases and the texts of
// testdata/corpus show. What a text resembles is only ever a guess or a suspicion.

// learned has the words of the texts of testdata/corpus that the judge was made with. The first line has the causes, each with how many texts
// there are of it; each further line a term and which causes' texts have it, as numbers of the first line's fields, and how many (not written
// when it is one). TestResemblance writes it.
//
//go:embed resemblance.txt
var learned string

// likeness knows how much a term speaks for a cause.
type likeness map[string][]speaks

// speaks is what a term adds for a cause.
type speaks struct {
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

// resembling is learned and the catalogue's own phrases, weighed once, when first used.
var resembling = sync.OnceValue(func() likeness {
	c := readCounts(learned)
	for _, k := range words().all {
		if k.kind == ofCause {
			c.add(k.id, termsOf(k.pattern.phrase))
		}
	}
	for _, h := range hints {
		for _, w := range h.words {
			c.add(h.id, termsOf(w))
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

// number is what is written, 1 when nothing is.
func number(s string) float64 {
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		return n
	}
	return 1
}

// weigh turns counts into weights: a term speaks for a cause by the share of its sights that the cause has, the louder the fewer causes
// share it and the more often it was seen.
func (c *counts) weigh() likeness {
	const steady = 3 // texts that every cause is taken to have besides, so that a few do not speak too loud
	like := make(likeness, len(c.terms))
	for term, by := range c.terms {
		total, sights := 0.0, 0.0
		for id, n := range by {
			total += n / math.Sqrt(c.texts[id]+steady)
			sights += n
		}
		rare := math.Log((float64(len(c.texts))+1)/(float64(len(by))+0.5)) * sights / (sights + 1)
		for id, n := range by {
			share := n / math.Sqrt(c.texts[id]+steady) / total
			like[term] = append(like[term], speaks{id, rare * math.Pow(share, 1.5)})
		}
	}
	return like
}

// resemblance is a cause and how much speaks for it.
type resemblance struct {
	id    symptom.ID
	score float64
}

// hintWeight is how much the first of the hints adds to what a text's terms say; the last adds nothing.
const hintWeight = 4

// causesOf are the causes that a text's terms, and the hints in its bare form, speak for, the loudest first.
func (l likeness) causesOf(terms []string, bareText []byte) []resemblance {
	scores := map[symptom.ID]float64{}
	for _, t := range terms {
		for _, s := range l[t] {
			scores[s.id] += s.weight
		}
	}
	for i, h := range hintWords() {
		if hasAny(bareText, h) {
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

// hintWords are the words of the hints in bare form.
var hintWords = sync.OnceValue(func() (all [][][]byte) {
	for _, h := range hints {
		all = append(all, bareAll(h.words...))
	}
	return all
})

// mostLike is the index of the text that speaks the loudest for the cause.
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

// wordsOf are the words of a line, without those that are names of one machine or moment.
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
