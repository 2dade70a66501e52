package event

import (
	"regexp"
	"strings"
)

const hidden = "***"

// Redact replaces the secrets that kubeadm, kubectl, container runtimes, Git and their files put into text:
//
//   - bootstrap tokens (their public id stays) and certificate keys, also wrapped;
//   - private keys in PEM, SSH2's and PuTTY's forms;
//   - JWTs, age keys, tokens of GitHub and GitLab, hashes of passwords;
//   - credentials of HTTP and in URLs;
//   - what has a secret's name, such as token, password or client-key-data, in
//     YAML, JSON, a command line or an assignment;
//   - base64 of any of these.
//
// It prefers hiding too much, except for what is public and tells one thing from another: hashes of CAs and images, IDs of containers,
// names of hosts. A secret that is split over several calls is not recognised.
func Redact(s string) string {
	if !maybeSecret(s) {
		return s
	}
	s = redactPEM(s)
	s = redactPuTTY(s)
	s = redactBase64(s)
	for _, f := range forms {
		s = f.redact(s)
	}
	s = redactTokens(s)
	s = redactCertificateKeys(s)
	return redactNamed(s)
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
	if strings.Contains(s, "PRIVATE KEY") || strings.Contains(s, "://") && strings.Contains(s, "@") || strings.Contains(s, "uthorization") ||
		strings.Contains(s, "$") {
		return true
	}
	return (strings.ContainsAny(s, ":=") || strings.Contains(s, "--")) && mayHaveName(s)
}

// mayHaveName tells whether a secret's name may be in the text, in whatever case. A regular expression takes its memory from a pool.
func mayHaveName(s string) bool {
	for i := range len(s) {
		for _, name := range [...]string{"token", "pass", "secret", "key", "auth"} {
			if len(s)-i >= len(name) && strings.EqualFold(s[i:i+len(name)], name) {
				return true
			}
		}
	}
	return false
}

var (
	keyBegin = regexp.MustCompile(`-----BEGIN [^\n-]{0,40}PRIVATE KEY[^\n-]{0,10}-----|---- BEGIN SSH2 [^\n-]{0,20}PRIVATE KEY ----`)
	keyEnd   = regexp.MustCompile(`-----?[ -]?END [^\n-]{0,40}PRIVATE KEY`)
	// keyTail is what is left of a key when only the end of an output was kept: lines that end with base64, whatever a log has before it.
	keyTail = regexp.MustCompile(`(?:[A-Za-z0-9+/=]{32,}(?:\s+|\\n)(?:[^\n]{0,200}[ \]:])?)*[A-Za-z0-9+/=]*\s*(?:\\n)?(?:[^\n]{0,200}[ \]:])?-----?[ -]?END [^\n-]{0,40}PRIVATE KEY[^\n-]{0,10}-----?`)
)

// redactPEM hides from each BEGIN to its END, or to the end of the text when there is none.
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
		b.WriteString(keyTail.ReplaceAllString(s[:begin[0]], hidden) + hidden)
		rest := s[begin[1]:]
		end := keyEnd.FindStringIndex(rest)
		if end == nil {
			return b.String()
		}
		s = rest[end[1]:]
		// The closing dashes may also be the opening ones of the next key.
		if after, ok := strings.CutPrefix(s, "-----"); ok && !strings.HasPrefix(after, "BEGIN ") {
			s = after
		} else if after, ok := strings.CutPrefix(s, " ----"); ok {
			s = after
		}
	}
	b.WriteString(keyTail.ReplaceAllString(s, hidden))
	return b.String()
}

var putty = regexp.MustCompile(`(Private-Lines: *\d+\s*\n)(?:[ \t]*[A-Za-z0-9+/=]+\s*(?:\n|$))+`)

// redactPuTTY hides the lines of a key in PuTTY's form.
func redactPuTTY(s string) string {
	if !strings.Contains(s, "Private-Lines:") {
		return s
	}
	return putty.ReplaceAllString(s, "${1}"+hidden+"\n")
}

// form is a secret that is known by how it begins.
type form struct {
	mark string
	is   *regexp.Regexp // of the text from the mark on; what it groups is hidden, or all of it
}

var forms = []form{
	{"eyJ", regexp.MustCompile(`^eyJ[\w-]{8,}\.[\w-]{2,}(?:\.[\w-]*)?`)},
	{"AGE-SECRET-KEY-", regexp.MustCompile(`^AGE-SECRET-KEY-[A-Za-z0-9-]+`)},
	{"ghp_", regexp.MustCompile(`^ghp_\w{16,}`)},
	{"gho_", regexp.MustCompile(`^gho_\w{16,}`)},
	{"ghs_", regexp.MustCompile(`^ghs_\w{16,}`)},
	{"ghu_", regexp.MustCompile(`^ghu_\w{16,}`)},
	{"github_pat_", regexp.MustCompile(`^github_pat_\w{16,}`)},
	{"glpat-", regexp.MustCompile(`^glpat-[\w-]{16,}`)},
	{"$2", regexp.MustCompile(`^\$2[abxy]?\$\d\d\$[./A-Za-z0-9]{20,}`)},
	{"$apr1$", regexp.MustCompile(`^\$apr1\$[./\w]+\$[./\w]+`)},
	{"$6$", regexp.MustCompile(`^\$6\$(?:rounds=\d+\$)?[./\w]+\$[./\w]{8,}`)},
	{"$5$", regexp.MustCompile(`^\$5\$(?:rounds=\d+\$)?[./\w]+\$[./\w]{8,}`)},
	{"$1$", regexp.MustCompile(`^\$1\$[./\w]+\$[./\w]{8,}`)},
	{"$y$", regexp.MustCompile(`^\$y\$[./\w]+\$[./\w]+\$[./\w]{8,}`)},
	{"{SHA}", regexp.MustCompile(`^\{SHA\}[A-Za-z0-9+/=]{20,}`)},
	{"://", regexp.MustCompile(`^://[^\s/@:"']*:([^\s/@"']+)@`)},
	{"://", regexp.MustCompile(`^://([^\s/@:"']{20,})@`)},
	{"uthorization", regexp.MustCompile(`^uthorization["'\\\]]*\s*[:=]?\s*["'\\\[]*(?:(?i:basic|bearer|digest|negotiate)\s+)([^\s"'\\,\]]+)`)},
	{"earer ", regexp.MustCompile(`^earer +([\w.~+/-]*\d[\w.~+/-]{15,}=*|[\w.~+/-]{15,}\d[\w.~+/-]*=*)`)},
}

func (f form) redact(s string) string {
	var b strings.Builder
	for {
		i := strings.Index(s, f.mark)
		if i < 0 {
			break
		}
		found := f.is.FindStringSubmatchIndex(s[i:])
		if found == nil {
			b.WriteString(s[:i+len(f.mark)])
			s = s[i+len(f.mark):]
			continue
		}
		from, to := found[0], found[1]
		if len(found) > 2 {
			from, to = found[2], found[3]
		}
		b.WriteString(s[:i+from] + hidden)
		s = s[i+to:]
	}
	if b.Len() == 0 {
		return s
	}
	return b.String() + s
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
