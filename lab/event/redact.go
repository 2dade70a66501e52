package event

import (
	"regexp"
	"strings"
)

const hidden = "***"

var (
	keyBegin = regexp.MustCompile(`-----BEGIN [^\n-]{0,40}PRIVATE KEY[^\n-]{0,10}-----`)
	keyEnd   = regexp.MustCompile(`-----END [^\n-]{0,40}PRIVATE KEY`)
	// keyTail is what is left of a key when only the end of an output was kept.
	keyTail = regexp.MustCompile(`(?:[A-Za-z0-9+/=]{32,}\s+)*[A-Za-z0-9+/=]*\s*-----END [^\n-]{0,40}PRIVATE KEY[^\n-]{0,10}-----`)

	// namedValue leaves the quotes of JSON, also of JSON within a JSON string.
	namedValue = regexp.MustCompile(`((?i:client-key-data|token)["'\\]*[ \t]*:[ \t]*\\?["']?)([^\s"'\\]+)`)
)

// Redact replaces the secrets that kubeadm, kubectl and their files put into
// text: bootstrap tokens (their public id stays), certificate keys, private
// keys in PEM, and the keys and tokens of a kubeconfig. It prefers hiding too
// much, except for CA and image hashes, which are public. A secret that is
// split over several calls is not recognised.
func Redact(s string) string {
	if !maybeSecret(s) {
		return s
	}
	s = redactPEM(s)
	s = redactTokens(s)
	s = redactCertificateKeys(s)
	return namedValue.ReplaceAllString(s, "${1}"+hidden)
}

// maybeSecret is the fast path for the many details that are a few plain words:
// every secret either is a long unbroken word or has a name next to it.
func maybeSecret(s string) bool {
	run := 0
	for i := range len(s) {
		if !isLowerNum(s[i]) && (s[i] < 'A' || s[i] > 'Z') {
			run = 0
			continue
		}
		if run++; run >= 16 {
			return true
		}
	}
	return strings.Contains(s, "PRIVATE KEY") || strings.Contains(s, ":") && namedValue.MatchString(s)
}

// redactPEM hides from each BEGIN to its END, or to the end of the text when
// there is none.
func redactPEM(s string) string {
	if !strings.Contains(s, "PRIVATE KEY") {
		return s
	}
	var b strings.Builder
	for {
		begin := keyBegin.FindStringIndex(s)
		if begin == nil {
			break
		}
		b.WriteString(s[:begin[0]] + hidden)
		rest := s[begin[1]:]
		end := keyEnd.FindStringIndex(rest)
		if end == nil {
			return b.String()
		}
		s = rest[end[1]:]
		// The closing dashes may also be the opening ones of the next key.
		if after, ok := strings.CutPrefix(s, "-----"); ok && !strings.HasPrefix(after, "BEGIN ") {
			s = after
		}
	}
	b.WriteString(keyTail.ReplaceAllString(s, hidden))
	return b.String()
}

// redactTokens looks around every dot by hand: a regular expression would skip
// a token that begins inside the previous match.
func redactTokens(s string) string {
	var b strings.Builder
	from := 0
	for dot := range len(s) {
		if s[dot] != '.' || runBefore(s, dot, 6, isLowerNum) < 6 {
			continue
		}
		n := runAfter(s, dot+1, isLowerNum)
		if n < 16 {
			continue
		}
		b.WriteString(s[from:dot+1] + hidden)
		from = dot + 1 + n
	}
	return b.String() + s[from:]
}

// redactCertificateKeys hides runs of exactly 64 hex digits.
func redactCertificateKeys(s string) string {
	var b strings.Builder
	from := 0
	for i := 0; i < len(s); {
		n := runAfter(s, i, isHex)
		if n == 64 && !strings.HasSuffix(s[:i], "sha256:") {
			b.WriteString(s[from:i] + hidden)
			from = i + n
		}
		i += max(n, 1)
	}
	return b.String() + s[from:]
}

func runAfter(s string, at int, in func(byte) bool) int {
	n := 0
	for at+n < len(s) && in(s[at+n]) {
		n++
	}
	return n
}

func runBefore(s string, at, limit int, in func(byte) bool) int {
	n := 0
	for n < limit && at-n > 0 && in(s[at-n-1]) {
		n++
	}
	return n
}

func isLowerNum(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
