package reader

// bareByte maps a byte to its bare form; 0 drops it. The bare form is what is left of text when everything that pasting, wrapping, quoting
// and terminals change is gone: lower case, no white space, no quotes, no backslashes, nothing that JSON writes as a number, nothing
// outside ASCII.
var bareByte = func() (t [256]byte) {
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

// appendBare appends the bare form of line to dst.
func appendBare(dst, line []byte) []byte {
	for i := 0; i < len(line); i++ {
		if b := bareByte[line[i]]; b != 0 {
			dst = append(dst, b)
		} else {
			i += dropped(line[i:]) - 1
		}
	}
	return dst
}

// dropped is how many bytes go with the first of s, which has no bare form: the rest of a terminal's escape sequence, however it is written,
// of JSON's \u003e, of rsyslog's #011, or of a web page's mark.
func dropped[T string | []byte](s T) int {
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

func bare(s string) string { return string(appendBare(nil, []byte(s))) }

// marks that web pages put into text: characters that are written as names, and tags, up to the name's end.
var (
	entities = []string{"&quot;", "&#34;", "&#39;", "&#x27;", "&apos;", "&gt;", "&lt;", "&amp;", "&nbsp;"}
	tags     = []string{"<br>", "<br/>", "<br />", "<p>", "</p>", "<code>", "</code>", "<pre>", "</pre>", "<b>", "</b>", "<em>", "</em>",
		"<strong>", "</strong>", "<li>", "</li>", "</span>", "<span>", "<div>", "</div>"}
)

// markup is how many bytes of a web page's writing s begins with, 1 when it is none.
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
