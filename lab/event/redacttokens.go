package event

import (
	"encoding/base64"
	"regexp"
	"strings"
)

// broken is what a terminal, or a program that wraps lines, inserts into a word.
const broken = `(?:\x1b\[[0-9;]*[A-Za-z]|\\?\r?\n[ \t]*)`

// brokenToken is a bootstrap token with such in it, from the word token before it on.
var brokenToken = regexp.MustCompile(`^oken[^\n]{0,60}?[^a-z0-9]([a-z0-9]{6}` + broken + `?\.)((?:` + broken + `?[a-z0-9]){16})`)

// redactTokens looks around every dot by hand: a regular expression would skip a token that begins inside the previous match.
func redactTokens(s string) string {
	if strings.Contains(s, "%2") {
		s = encodedToken.ReplaceAllString(s, "${1}"+hidden)
	}
	s = redactBroken(s)
	var b strings.Builder
	from := 0
	for dot := range len(s) {
		if s[dot] != '.' || runBefore(s, dot, 6, isLowerNum) < 6 {
			continue
		}
		n := runAfter(s, dot+1, isLowerNum)
		if n < 16 || isHost(s, dot, n) {
			continue
		}
		b.WriteString(s[from:dot+1] + hidden)
		from = dot + 1 + n
	}
	return b.String() + s[from:]
}

func redactBroken(s string) string {
	var b strings.Builder
	for {
		i := strings.Index(s, "oken")
		if i < 0 {
			return b.String() + s
		}
		end := i + len("oken")
		if part := brokenToken.FindStringSubmatchIndex(s[i:]); part != nil {
			if found := s[i+part[2] : i+part[5]]; strings.ContainsAny(found, "\n\x1b") && strings.ContainsAny(s[i+part[4]:i+part[5]], "0123456789") {
				b.WriteString(s[:i+part[4]] + hidden)
				s = s[i+part[5]:]
				continue
			}
		}
		b.WriteString(s[:end])
		s = s[end:]
	}
}

var encodedToken = regexp.MustCompile(`([a-z0-9]{6}%2[eE])[a-z0-9]{16}`)

// isHost reports whether the words around a dot are a host's name: only letters, at a place where host names stand.
func isHost(s string, dot, n int) bool {
	begin := dot - runBefore(s, dot, 253, func(c byte) bool { return isLowerNum(c) || c == '-' || c == '.' })
	if strings.ContainsAny(s[dot+1:dot+1+n], "0123456789") {
		return false
	}
	before, after := s[:begin], s[dot+1+n:]
	for _, place := range []string{"lookup ", "://", "host ", "server ", "dial tcp "} {
		if strings.HasSuffix(before, place) {
			return true
		}
	}
	return nextLabel.MatchString(after)
}

// nextLabel is what follows in the name of a host: another part of it, or a port.
var nextLabel = regexp.MustCompile(`^(?:\.[a-z]{2,15}(?:[^a-z0-9]|$)|:[0-9]{2,5}(?:[^a-z0-9]|$))`)

var (
	// ofContainer ends the text before an ID of a container, a sandbox or a task.
	ofContainer = regexp.MustCompile(`(?:containerd://|cri-o://|docker://|cri-containerd-|crio-|docker-|k8s\.io[/-]|/s/|/containers?/|` +
		`(?i:container|sandbox|pod|image|shim|task|exec|process|scope)[a-z_ ]{0,12}(?i:ids?)?(?:["\\'=:, \t\[]{1,6}|:\s{1,3})|sandboxes-|metrics for |cpuset=|(?i:sha-?\d{1,3})[ =:"(]{1,4}|\b(?i:ids?)["\\]{0,3}[=: ]["\\ ]{0,3}|\bfor ["\\]{1,3})$`)
	// wrappedKey is a certificate key in parts, from its name on.
	wrappedKey = regexp.MustCompile(`^[-_ ]?(?i:key)["'\\]*(?:[=:]|\s|\\n)[\s"'\\:=>|n-]*((?:[0-9A-Fa-f]{4,}(?:[\s"'\\+]|\\n)*)+)`)
)

const keyDigits = 64 // of a certificate key

// redactCertificateKeys hides runs of 64 hex digits, and slightly longer ones: the text before a key may end with a letter that is also a
// hex digit.
func redactCertificateKeys(s string) string {
	s = redactWrappedKeys(s)
	var b strings.Builder
	from := 0
	for i := 0; i < len(s); {
		n := runAfter(s, i, isHex)
		if n >= keyDigits && n <= keyDigits+8 && !isPublic(s, i) {
			b.WriteString(s[from:i] + hidden)
			from = i + n
		}
		i += max(n, 1)
	}
	return b.String() + s[from:]
}

// isPublic reports whether the digits from there on are a hash or the ID of a container.
func isPublic(s string, at int) bool {
	before := s[max(at-40, 0):at]
	return strings.HasSuffix(before, "sha256:") || ofContainer.MatchString(before)
}

func redactWrappedKeys(s string) string {
	for _, name := range []string{"ertificate", "ERTIFICATE"} {
		var b strings.Builder
		for {
			i := strings.Index(s, name)
			if i < 0 {
				break
			}
			i += len(name)
			b.WriteString(s[:i])
			s = s[i:]
			part := wrappedKey.FindStringSubmatchIndex(s)
			if part == nil {
				continue
			}
			key := strings.TrimRight(s[part[2]:part[3]], " \t\r\n\"'\\+")
			if digits := strings.Count(strings.Map(hexMark, key), "x"); digits >= keyDigits && runAfter(key, 0, isHex) < keyDigits {
				b.WriteString(s[:part[2]] + hidden)
				s = s[part[2]+len(key):]
			}
		}
		s = b.String() + s
	}
	return s
}

// hexMark makes every hexadecimal digit an x, and nothing else.
func hexMark(r rune) rune {
	if r < 0x80 && isHex(byte(r)) {
		return 'x'
	}
	return ' '
}

// base64 is decoded only from this length on.
const base64Least = 20

// secretBegins are the beginnings, in base64, of "-----BEGIN ", "apiVersion: ", {"apiVersion and {"kind.
var secretBegins = []string{"LS0tLS1CRUdJTi", "YXBpVmVyc2lvbjog", "eyJhcGlWZXJzaW9u", "eyJraW5kIjoi"}

// redactBase64 hides what is a secret when it is decoded. A certificate stays.
func redactBase64(s string) string {
	var b strings.Builder
	from := 0
	for i := 0; i < len(s); {
		n := runAfter(s, i, isBase64)
		if n < base64Least || runAfter(s, i, isHex) == n {
			i += max(n, 1)
			continue
		}
		end := i + n
		begin, secret := secretIn(s[i:end])
		if secret {
			b.WriteString(s[from:i+begin] + hidden)
			from = wholeBase64(s, end)
			end = from
		}
		i = end
	}
	if from == 0 {
		return s
	}
	return b.String() + s[from:]
}

// secretIn tells whether a run of base64 has a secret, at any place.
func secretIn(run string) (begin int, secret bool) {
	for _, mark := range secretBegins {
		if i := strings.Index(run, mark); i >= 0 {
			text := decoded(run[i:])
			if !strings.HasPrefix(text, "-----BEGIN") || strings.Contains(text, "PRIVATE KEY") {
				return i, true
			}
			return 0, false
		}
	}
	const most = 4096
	if len(run) > most {
		return 0, false
	}
	text := decoded(run)
	return 0, text != "" && Redact(text) != text
}

// decoded is the text in a run of base64, as far as it goes; "" if that is none.
func decoded(run string) string {
	if first, err := base64.RawStdEncoding.DecodeString(run[:base64Least]); err != nil || !isText(first) {
		return ""
	}
	all, err := base64.RawStdEncoding.DecodeString(run[:len(run)/4*4])
	if err != nil || !isText(all) {
		return ""
	}
	if rest, err := base64.RawStdEncoding.DecodeString(run); err == nil && isText(rest) {
		return string(rest)
	}
	return string(all)
}

func isText(b []byte) bool {
	for _, c := range b {
		if (c < ' ' || c > '~') && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// wholeBase64 is the end of base64 that continues on further lines, which have nothing else.
func wholeBase64(s string, end int) int {
	for end < len(s) && s[end] == '=' {
		end++
	}
	for {
		next := end
		for next < len(s) && (s[next] == '\n' || s[next] == '\r' || s[next] == ' ' || s[next] == '\t') {
			next++
		}
		n := runAfter(s, next, isBase64)
		if n < 4 || !strings.Contains(s[end:next], "\n") {
			return end
		}
		after := next + n
		for after < len(s) && s[after] == '=' {
			after++
		}
		if after < len(s) && s[after] != '\n' && s[after] != '\r' {
			return end
		}
		end = after
	}
}

func isBase64(c byte) bool {
	return isLowerNum(c) || c >= 'A' && c <= 'Z' || c == '+' || c == '/'
}
