package symptom

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
	for _, c := range []byte("\"'`\\<>&*") {
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

// dropped is how many bytes go with the first of s, which has no bare form: the rest of a terminal's escape sequence or of JSON's \u003e.
func dropped[T string | []byte](s T) int {
	switch {
	case s[0] == 0x1b && len(s) > 1 && s[1] == '[':
		for i := 2; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
		}
		return len(s)
	case s[0] == '&' || s[0] == '<':
		return markup(s)
	case s[0] == '\\' && len(s) > 5 && s[1] == 'u' && s[2] == '0' && s[3] == '0':
		return 6
	}
	return 1
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
