package event

import (
	"regexp"
	"strings"
)

// secretNames are, in lower case, how the names of secrets end.
var secretNames = []string{
	"token", "token-secret", "password", "passwd", "passphrase", "client-secret", "clientsecret", "client_secret", "secret-key", "secret_key", "secretkey",
	"secret_access_key", "secretaccesskey", "client-key-data", "private-key", "private_key", "privatekey", ".key", "certificate-key", "certificatekey", "auth",
}

// redactNamed hides the values of secrets' names in YAML and JSON, in a command line, and in an assignment.
func redactNamed(s string) string {
	lower := lowered(s)
	var b strings.Builder
	from := 0
	for i := 0; i < len(s); {
		at, name := nextName(lower, i)
		if at < 0 {
			break
		}
		i = at + len(name)
		v := valueOf(s, at, i, name)
		if v.to <= max(v.from, from) || v.from < from {
			continue
		}
		b.WriteString(s[from:v.from] + hidden)
		from, i = v.to, v.to
	}
	if from == 0 {
		return s
	}
	return b.String() + s[from:]
}

// lowered has A to Z in lower case, and each byte where it was.
func lowered(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// nextName finds the next name that ends as a word does.
func nextName(lower string, from int) (at int, name string) {
	at = -1
	for i := from; i < len(lower); i++ {
		// All names end with one of these, and what follows is no part of a word.
		switch lower[i] {
		case 'n', 't', 'd', 'y', 'a', 'h', 'e':
		default:
			continue
		}
		if i+1 < len(lower) && isNameByte(lower[i+1]) {
			continue
		}
		for _, n := range secretNames {
			if begin := i + 1 - len(n); begin >= from && lower[begin:i+1] == n && (at < 0 || begin < at) {
				at, name = begin, n
			}
		}
		if at >= 0 {
			return at, name
		}
	}
	return -1, ""
}

func isNameByte(c byte) bool {
	return isLowerNum(c) || c >= 'A' && c <= 'Z' || c == '-' || c == '_'
}

type value struct{ from, to int }

var none = value{}

// valueOf is the part of a name's value that is to be hidden, none if there is nothing secret.
func valueOf(s string, at, end int, name string) value {
	begin := at - runBefore(s, at, 60, func(c byte) bool { return isNameByte(c) || c == '.' })
	flag := strings.HasPrefix(s[begin:], "--")
	rest := end + runAfter(s, end, func(c byte) bool { return c == '"' || c == '\'' || c == '\\' })
	quotedName := rest > end
	if name == "auth" && !quotedName {
		return none // a word of many messages
	}
	rest += runAfter(s, rest, isBlank)
	switch {
	case rest < len(s) && (s[rest] == ':' || s[rest] == '='):
		assigned := s[rest] == '='
		if !assigned && rest > end && !quotedName {
			return none // "token :" is prose
		}
		rest++
		return valueAt(s, rest, keyPosition(s, begin), assigned || flag || quotedName)
	case flag && !quotedName && rest > end:
		return valueAt(s, rest, -1, true)
	}
	return none
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// keyPosition is the column of a key of YAML or JSON that begins there; -1 if a word is before it on the line.
func keyPosition(s string, begin int) int {
	line := strings.LastIndexByte(s[:begin], '\n') + 1
	if i := strings.LastIndex(s[line:begin], `\n`); i >= 0 {
		line += i + len(`\n`)
	}
	before := strings.TrimRight(s[line:begin], `"'\`)
	if trimmed := strings.TrimRight(before, " \t-?"); trimmed == "" {
		return begin - line
	}
	last := strings.TrimRight(before, " \t")
	switch {
	case strings.HasSuffix(last, ":") && len(before) < begin-line: // YAML in a string of JSON
		return 0
	case strings.HasSuffix(last, "{"), strings.HasSuffix(last, ","):
		return begin - line
	}
	return -1
}

// valueAt is the value from there on. column is that of its key, -1 for none; sure is a value that cannot be prose.
func valueAt(s string, at, column int, sure bool) value {
	from := at + runAfter(s, at, isBlank)
	quotes := runAfter(s, from, func(c byte) bool { return c == '"' || c == '\'' || c == '\\' && from < len(s) })
	if quotes > 0 && (from >= len(s) || strings.HasPrefix(s[from:], `\n`)) {
		quotes = 0
	}
	if quotes > 0 {
		from += quotes
		to := from + runAfter(s, from, func(c byte) bool { return c != '"' && c != '\'' && c != '\\' && c != '\n' })
		if to == from || s[from:to] == hidden {
			return none
		}
		return value{from, to}
	}
	to := from + runAfter(s, from, func(c byte) bool { return !strings.ContainsRune(" \t\r\n\"'\\,;&", rune(c)) })
	word := s[from:to]
	if column >= 0 && (word == "" || word[0] == '|' || word[0] == '>') {
		return block(s, to, column)
	}
	word = strings.TrimRight(word, "}])")
	to = from + len(word)
	switch {
	case word == "" || strings.Contains(word, hidden) || strings.ContainsRune("{[&*$<(%", rune(word[0])):
		return none
	case path.MatchString(word):
		return none
	case word == "null" || word == "true" || word == "false" || word == "~":
		return none
	case sure, column >= 0 && endsLine(s[to:]), random(word):
		return value{from, to}
	}
	return none
}

// path is one of a file, in lower case as nearly all are: base64 is not.
var path = regexp.MustCompile(`^/[a-z0-9._-]+/[a-z0-9._/-]+$`)

// endsLine reports whether only closing brackets follow on the line.
func endsLine(rest string) bool {
	for i := range len(rest) {
		switch rest[i] {
		case ' ', '\t', '\r', '}', ']', ')', ',', '"', '\'':
		case '\n':
			return true
		case '\\':
			return strings.HasPrefix(rest[i:], `\n`) || strings.HasPrefix(rest[i:], `\"`)
		default:
			return false
		}
	}
	return true
}

// random reports whether a word looks random: it is long, has letters and digits, and is no path, address or beginning of a sentence.
func random(word string) bool {
	if len(word) < 8 || strings.HasSuffix(word, ":") || strings.ContainsAny(word, "/\\<>") {
		return false
	}
	letters, digits := 0, 0
	for i := range len(word) {
		switch c := word[i]; {
		case c >= '0' && c <= '9':
			digits++
		case isLowerNum(c), c >= 'A' && c <= 'Z':
			letters++
		}
	}
	return letters > 0 && digits > 0 || len(word) >= 32
}

// block is a value on the lines below its key, which are indented more.
func block(s string, at, column int) value {
	const escaped = `\n`
	newline := func(i int) int { // the length of the end of a line there
		if strings.HasPrefix(s[i:], "\n") {
			return 1
		}
		if strings.HasPrefix(s[i:], escaped) {
			return len(escaped)
		}
		return 0
	}
	lineEnd := func(i int) int {
		for i < len(s) && newline(i) == 0 {
			i++
		}
		return i
	}
	found := none
	for at = lineEnd(at); at < len(s); {
		begin := at + newline(at)
		indent := runAfter(s, begin, isBlank)
		end := lineEnd(begin)
		text := strings.TrimRight(s[begin+indent:end], " \t\r\"'\\,}]")
		switch {
		case text == "" && end < len(s):
		case indent <= column || text == "" || found == none && (strings.Contains(text, ": ") || strings.HasSuffix(text, ":") || strings.HasPrefix(text, "- ")):
			return found
		case found == none:
			found = value{begin + indent, begin + indent + len(text)}
		default:
			found.to = begin + indent + len(text)
		}
		at = end
	}
	return found
}
