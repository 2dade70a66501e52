//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// scanner finds secrets in text: those that it was told, wherever they are, and what looks like one.
type scanner struct {
	known map[string]string // the secret → what it is
}

var (
	privateKey = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----`)
	token      = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)
	aboutToken = regexp.MustCompile(`(?i)token`)
	// A certificate key is 64 hex digits, and so is much that is public: digests, and the ids of containers in a node's journal.
	longHex  = regexp.MustCompile(`(?:^|[^0-9A-Fa-f:@_-])([0-9a-f]{64})(?:[^0-9A-Fa-f]|$)`)
	aboutKey = regexp.MustCompile(`(?i)certificate[- _]?key`)
)

func newScanner() *scanner { return &scanner{known: map[string]string{}} }

// add tells the scanner a secret. Short words would be found everywhere.
func (s *scanner) add(what, secret string) {
	if len(secret) >= 16 {
		s.known[secret] = what
	}
}

// addPEM adds each line of a key's body, as a cut or wrapped log would show it.
func (s *scanner) addPEM(what, pem string) {
	for line := range strings.Lines(pem) {
		if line = strings.TrimSpace(line); len(line) >= 60 && !strings.HasPrefix(line, "-----") {
			s.add(what, line)
		}
	}
}

// scan returns what it finds, never the secret itself: findings end up in logs. ours is text that labctl wrote, in which no run of 64 hex
// digits is harmless.
func (s *scanner) scan(where string, data []byte, ours bool) []string {
	var found []string
	for secret, what := range s.known {
		if i := bytes.Index(data, []byte(secret)); i >= 0 {
			found = append(found, fmt.Sprintf("%s: %s at byte %d", where, what, i))
		}
	}
	if at := privateKey.FindIndex(data); at != nil {
		found = append(found, fmt.Sprintf("%s: a private key at byte %d", where, at[0]))
	}
	n := 0
	for line := range bytes.Lines(data) {
		n++
		if aboutToken.Match(line) && token.Match(line) {
			found = append(found, fmt.Sprintf("%s:%d: a bootstrap token", where, n))
		}
		if (ours || aboutKey.Match(line)) && longHex.Match(line) {
			found = append(found, fmt.Sprintf("%s:%d: a certificate key", where, n))
		}
	}
	return found
}

var _ = Describe("the search for secrets", Label("ci"), func() {
	key := strings.Repeat("0f1e2d3c", 8)
	body := strings.Repeat("QUJD", 16)
	s := newScanner()
	s.add("the token", "abcdef.0123456789abcdef")
	s.addPEM("the CA's key", "-----BEGIN RSA PRIVATE KEY-----\n"+body+"\n-----END RSA PRIVATE KEY-----\n")

	DescribeTable("finds", func(text string, ours bool) {
		found := s.scan("log", []byte("a line before\n"+text+"\n"), ours)
		Expect(found).NotTo(BeEmpty())
		Expect(strings.Join(found, "\n")).NotTo(Or(ContainSubstring(key), ContainSubstring(body), ContainSubstring("0123456789abcdef")))
	},
		Entry("a known token anywhere", "x=abcdef.0123456789abcdef;", false),
		Entry("any token in a join command", "kubeadm join --token zyxwvu.fedcba9876543210", false),
		Entry("a certificate key in a node's log", "--certificate-key "+key, false),
		Entry("a certificate key in our own output", `{"detail":"`+key+`"}`, true),
		Entry("a line of a known key", "garbled "+body, false),
		Entry("the beginning of any key", "-----BEGIN EC PRIVATE KEY-----", false),
	)
	DescribeTable("passes over", func(text string, ours bool) {
		Expect(s.scan("log", []byte(text+"\n"), ours)).To(BeEmpty())
	},
		Entry("the hash of a CA certificate", "sha256:"+key, true),
		Entry("a container's id in a journal", "container "+key, false),
		Entry("a redacted token", "token abcdef.***", true),
		Entry("a certificate", "-----BEGIN CERTIFICATE-----", true),
	)
})
