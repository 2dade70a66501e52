package reader

// normalByte maps a byte to its normal form; 0 drops it. Text in normal form lacks everything that pasting, wrapping, quoting and
// terminals change: it is in lower case and has no white space, no quotes, no backslashes, no characters that JSON escapes as numbers and
// none outside ASCII.
var normalByte = func() (t [256]byte) {
	for c := byte('!'); c <= '~'; c++ {
		t[c] = c
		if c >= 'A' && c <= 'Z' {
			t[c] = c + 'a' - 'A'
		}
	}
	t['\n'] = '\n' // ends a record; in a phrase it stands for that end
	for _, c := range []byte("\"'`\\<>&*#^") {
		t[c] = 0
	}
	return t
}()

// appendNormalized appends the normal form of line to dst.
func appendNormalized(dst, line []byte) []byte {
	for i := 0; i < len(line); i++ {
		if b := normalByte[line[i]]; b != 0 {
			dst = append(dst, b)
		} else {
			i += escapeLength(line[i:]) - 1
		}
	}
	return dst
}

// escapeLength is how many bytes the escape is long that begins with the first byte of s, which has no normal form: a terminal's escape
// sequence, however it is written, JSON's \u003e, rsyslog's #011, or a web page's tag or entity. It is 1 if there is no escape.
func escapeLength[T string | []byte](s T) int {
	switch s[0] {
	case 0x1b, '\\', '#', '^':
		for _, escape := range escapes {
			if len(s) >= len(escape) && string(s[:len(escape)]) == escape {
				return sequence(s, len(escape))
			}
		}
	case '&', '<':
		return markup(s)
	}
	switch {
	case s[0] == '\\' && len(s) > 5 && s[1] == 'u' && s[2] == '0' && s[3] == '0':
		return 6
	case s[0] == '#' && len(s) > 3 && s[1] == '0' && s[2] == '1' && s[3] >= '0' && s[3] <= '7':
		return 4
	}
	return 1
}

// escapes are the ways in which the beginning of a terminal's escape sequence is written.
var escapes = []string{"\x1b[", `\u001b[`, `\x1b[`, `\033[`, `\e[`, "#033[", "^[["}

// sequence is the length of an escape sequence in s whose beginning takes from bytes: up to the letter that ends it.
func sequence[T string | []byte](s T, from int) int {
	for i := from; i < len(s); i++ {
		if s[i] >= 0x40 && s[i] <= 0x7e {
			return i + 1
		}
	}
	return len(s)
}

func normalize(s string) string { return string(appendNormalized(nil, []byte(s))) }

// normalizeAll are texts in normal form.
func normalizeAll(texts ...string) (all [][]byte) {
	for _, t := range texts {
		all = append(all, []byte(normalize(t)))
	}
	return all
}

// The entities and tags of web pages that are dropped.
var (
	entities = []string{"&quot;", "&#34;", "&#39;", "&#x27;", "&apos;", "&gt;", "&lt;", "&amp;", "&nbsp;"}
	tags     = []string{"<br>", "<br/>", "<br />", "<p>", "</p>", "<code>", "</code>", "<pre>", "</pre>", "<b>", "</b>", "<em>", "</em>",
		"<strong>", "</strong>", "<li>", "</li>", "</span>", "<span>", "<div>", "</div>"}
)

// markup is the length of the entity or tag of a web page that s begins with, 1 if there is none.
func markup[T string | []byte](s T) int {
	known := entities
	if s[0] == '<' {
		known = tags
	}
	for _, m := range known {
		if len(s) >= len(m) && string(s[:len(m)]) == m {
			return len(m)
		}
	}
	return 1
}
