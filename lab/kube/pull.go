package kube

import "strings"

// PullCause is why an image did not come, as far as the runtime's message tells.
type PullCause string

// The causes.
const (
	PullUnknown     PullCause = ""
	PullUnreachable PullCause = "unreachable" // the registry does not answer
	PullClosed      PullCause = "closed"      // nothing listens at its address
	PullUntrusted   PullCause = "untrusted"   // its certificate is not believed
	PullPlain       PullCause = "plain"       // it speaks HTTP and is asked in TLS
	PullRefused     PullCause = "refused"     // it wants a login, or refuses the one that it got
	PullLimited     PullCause = "limited"     // it has answered too often
	PullAbsent      PullCause = "absent"      // it has no such image
	PullProxy       PullCause = "proxy"       // the proxy that it is asked through cannot be had
)

// Stranded reports whether the node may have no way to any registry.
func (c PullCause) Stranded() bool { return c == PullUnknown || c == PullUnreachable }

// pullWords are what containerd and CRI-O write, the most certain first: a registry that refuses also says that there may be no such image.
var pullWords = []struct {
	cause PullCause
	words []string
}{
	{PullLimited, []string{"toomanyrequests", "429 Too Many Requests"}},
	{PullPlain, []string{"server gave HTTP response to HTTPS client"}},
	{PullUntrusted, []string{"x509: ", "tls: failed to verify certificate"}},
	{PullRefused, []string{"401 Unauthorized", "403 Forbidden", "pull access denied", "authorization failed", "unauthorized: ",
		"no basic auth credentials", "access to the resource is denied"}},
	{PullProxy, []string{"proxyconnect "}}, // what is said of the proxy is not said of the registry
	{PullClosed, []string{"connect: connection refused"}},
	{PullUnreachable, []string{"connection refused", "no route to host", "network is unreachable", "i/o timeout", "no such host",
		"Temporary failure in name resolution", "TLS handshake timeout", "server misbehaving", "connection reset by peer", "context deadline exceeded", "Client.Timeout exceeded"}},
	{PullAbsent, []string{"not found", "manifest unknown"}},
}

// pullCause reads the message of a container that waits for its image.
func pullCause(message string) PullCause {
	for _, p := range pullWords {
		for _, word := range p.words {
			if strings.Contains(message, word) {
				return p.cause
			}
		}
	}
	return PullUnknown
}
