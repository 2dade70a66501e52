package reader

import "strings"

// strength says how much one sight of a pattern proves.
type strength int

const (
	// weak proves nothing alone, because healthy nodes print it too. It counts beside a failure that its cause explains by the graph.
	weak strength = iota
	// guessed is what a program assumes without having looked. It proves the cause, unless the text has shown before that it passed.
	guessed
	// sure proves the cause unless something later shows that it passed.
	sure
	// certain proves it and ends a wait: no retry of the same command can succeed, and no healthy join prints it.
	certain
)

// pattern is a phrase as the programs print it, matched in the normal form of text (see appendNormalized): letter case, spaces, quotes
// and line ends do not matter. A * stands for anything, within gapLimit.
type pattern struct {
	phrase   string
	strength strength
	// atLeast is how often it must be seen to count, unless it is part of the error that ended a command. 0 is once.
	atLeast int
	// weighed counts a record about a second or more as two, and about five seconds or more as three.
	weighed bool
	// unless rules a match out when one of these phrases is in the same record.
	unless []string
}

// gapLimit is how many bytes of normalized text a * may stand for.
const gapLimit = 240

func phrases(s strength, texts []string) []pattern {
	ps := make([]pattern, len(texts))
	for i, t := range texts {
		ps[i] = pattern{phrase: t, strength: s}
	}
	return ps
}

func mayShow(texts ...string) []pattern     { return phrases(weak, texts) }
func assumes(texts ...string) []pattern     { return phrases(guessed, texts) }
func proves(texts ...string) []pattern      { return phrases(sure, texts) }
func endsTheWait(texts ...string) []pattern { return phrases(certain, texts) }
func together(groups ...[]pattern) (ps []pattern) {
	for _, g := range groups {
		ps = append(ps, g...)
	}
	return ps
}

// repeated is for what a healthy node prints now and then: n times is too often.
func repeated(n int, texts ...string) []pattern {
	ps := phrases(sure, texts)
	for i := range ps {
		ps[i].atLeast = n
	}
	return ps
}

// slow is repeated for complaints about how long something took.
func slow(n int, texts ...string) []pattern {
	ps := repeated(n, texts...)
	for i := range ps {
		ps[i].weighed = true
	}
	return ps
}

// except rules out records with any of the texts in them.
func except(ps []pattern, texts ...string) []pattern {
	for i := range ps {
		ps[i].unless = texts
	}
	return ps
}

// phrase is a compiled pattern: its parts in normal form, in the order in which they must follow one another.
type phrase struct {
	parts  []string
	anchor int // the part that the matcher looks for: the longest
	unless []string
}

func compile(p pattern) phrase {
	var c phrase
	for _, part := range strings.Split(p.phrase, "*") {
		c.parts = append(c.parts, normalize(part))
	}
	for i, part := range c.parts {
		if len(part) > len(c.parts[c.anchor]) {
			c.anchor = i
		}
	}
	for _, u := range p.unless {
		c.unless = append(c.unless, normalize(u))
	}
	return c
}

// matchAt reports whether the phrase is in text with its anchor at the offset, and where the phrase begins.
func (c phrase) matchAt(text string, at int) (begin int, ok bool) {
	if !strings.HasPrefix(text[at:], c.parts[c.anchor]) {
		return 0, false
	}
	begin = at
	for i := c.anchor - 1; i >= 0; i-- {
		from := max(0, begin-gapLimit-len(c.parts[i]))
		j := strings.LastIndex(text[from:begin], c.parts[i])
		if j < 0 {
			return 0, false
		}
		begin = from + j
	}
	end := at + len(c.parts[c.anchor])
	for _, part := range c.parts[c.anchor+1:] {
		j := strings.Index(text[end:min(len(text), end+gapLimit+len(part))], part)
		if j < 0 {
			return 0, false
		}
		end += j + len(part)
	}
	return begin, true
}

// excluded reports whether the text has what rules the phrase out.
func (c phrase) excluded(text string) bool {
	for _, u := range c.unless {
		if strings.Contains(text, u) {
			return true
		}
	}
	return false
}

// find is where the phrase begins in text, or -1.
func (c phrase) find(text string) int {
	for from := 0; from < len(text); {
		at := strings.Index(text[from:], c.parts[c.anchor])
		if at < 0 {
			break
		}
		if begin, ok := c.matchAt(text, from+at); ok {
			return begin
		}
		from += at + 1
	}
	return -1
}
