package symptom

import "strings"

// Level says how bad a finding is.
type Level string

// The levels.
const (
	Fail Level = "fail" // something does not work because of it
	Warn Level = "warn" // nothing is known to fail because of it
)

// Finding is one cause that a judge named.
type Finding struct {
	Symptom    ID         `json:"symptom"`
	Detail     string     `json:"detail,omitempty"` // which kind of it, where there are several with remedies of their own
	Level      Level      `json:"level"`
	Node       string     `json:"node"` // "" when the evidence does not say
	Meaning    string     `json:"meaning"`
	Evidence   []Evidence `json:"evidence"`
	Hint       string     `json:"hint"`
	Repairable bool       `json:"repairable"`
	BecauseOf  ID         `json:"because_of"` // the cause among the findings that brought this one about, or may hide it; "" for a root
}

// Evidence is one place where a finding shows.
type Evidence struct {
	Source string `json:"source"` // what was read, and the journal's program when it names one
	Line   int    `json:"line"`   // from 1
	Time   string `json:"time"`   // as written there, "" when there is none
	Text   string `json:"text"`   // redacted, one line
}

// excerptLimit is the longest Text, in bytes.
const excerptLimit = 400

// evidence tells of a sight. Redacting comes before cutting, because a secret may be known only by the word before it.
func (s *sight) evidence(source string, redact func(string) string) (Evidence, head) {
	h := readHead(string(s.raw[:min(len(s.raw), headSearch)]))
	if h.program != "" {
		source = strings.TrimLeft(source+" "+h.program, " ")
	}
	return Evidence{Source: source, Line: s.line, Time: h.time, Text: excerpt(redact(string(s.raw)), s.known.phrase)}, h
}

// excerpt is the part of text around the phrase, without control characters.
func excerpt(text string, p phrase) string {
	from := 0
	if len(text) > excerptLimit {
		if at := p.find(bare(text) + "\n"); at > 0 {
			from = max(0, rawOffset(text, at)-excerptLimit/3)
		}
	}
	short := text[from:min(len(text), from+excerptLimit)]
	clean := make([]byte, 0, len(short))
	for i := 0; i < len(short); i++ {
		switch c := short[i]; {
		case c == 0x1b:
			i += dropped(short[i:]) - 1
		case c < ' ' || c == 0x7f:
			clean = append(clean, ' ')
		default:
			clean = append(clean, c)
		}
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(clean), ""))
}

// rawOffset is where in text the byte stands that has the given offset in its bare form.
func rawOffset(text string, bareOffset int) int {
	for i := 0; i < len(text); i++ {
		if bareByte[text[i]] != 0 {
			if bareOffset--; bareOffset < 0 {
				return i
			}
		} else {
			i += dropped(text[i:]) - 1
		}
	}
	return len(text)
}
