package reader

import (
	"strings"

	"k8slab/lab/symptom"
)

// excerptLimit is the longest Text, in bytes.
const excerptLimit = 400

// evidence is a sight as a finding shows it. It redacts before it cuts, because often only the word before a secret tells that it is one.
func (s *sight) evidence(source string, redact func(string) string) (symptom.Evidence, logHeader) {
	h := readHeader(s.raw)
	if h.program != "" {
		source = strings.TrimLeft(source+" "+h.program, " ")
	}
	return symptom.Evidence{Source: source, Line: s.line, Time: h.time, Text: excerpt(redact(string(s.raw)), s.known.phrase)}, h
}

// excerpt is the part of text around the phrase, without control characters.
func excerpt(text string, p phrase) string {
	from := 0
	if len(text) > excerptLimit {
		if at := p.find(normalize(text) + "\n"); at > 0 {
			from = max(0, rawOffset(text, at)-excerptLimit/3)
		}
	}
	short := text[from:min(len(text), from+excerptLimit)]
	clean := make([]byte, 0, len(short))
	for i := 0; i < len(short); i++ {
		switch c := short[i]; {
		case c == 0x1b:
			i += escapeLength(short[i:]) - 1
		case c < ' ' || c == 0x7f:
			clean = append(clean, ' ')
		default:
			clean = append(clean, c)
		}
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(clean), ""))
}

// rawOffset is where in text the byte stands that has the given offset in its normal form.
func rawOffset(text string, normalOffset int) int {
	for i := 0; i < len(text); i++ {
		if normalByte[text[i]] != 0 {
			if normalOffset--; normalOffset < 0 {
				return i
			}
		} else {
			i += escapeLength(text[i:]) - 1
		}
	}
	return len(text)
}
