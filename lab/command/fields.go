package command

import "strings"

// SplitQuoted splits at spaces outside of double quotes, in which systemctl and iptables-save show what has spaces: "A=b c" D=e.
func SplitQuoted(s string) []string {
	var words []string
	var word strings.Builder
	quoted, escaped := false, false
	flush := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	for _, r := range s {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\':
			escaped = true
		case r == '"':
			quoted = !quoted
		case r == ' ' && !quoted:
			flush()
		default:
			word.WriteRune(r)
		}
	}
	flush()
	return words
}
