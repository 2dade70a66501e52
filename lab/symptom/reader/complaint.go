package reader

import (
	"bytes"
	"regexp"
	"strings"
)

// complaint is a record that says that something went wrong.
type complaint struct {
	line        int
	normal, raw []byte
	isError     bool // it is marked as an error, or ended a command
}

// errorMarks are how programs other than klog's mark a record as an error, in normal form.
var errorMarks = normalizeAll("level=error", "level=fatal", "\"level\":\"error\"", "\"level\":\"fatal\"", "panic:", "[FATAL]", "FATAL:",
	"ERRO[", "FATA[", "CRITICAL:", "[ERROR]", "]: Error:", "Main process exited, code=", "Failed with result", "entered failed state")

// klogLevel is the letter by which klog says how bad a record is: I, W, E or F, and 0 for a record without.
func klogLevel(raw []byte) byte {
	const header = "I0102 15:04:05"
	start := raw[:min(len(raw), headerReach)]
	for i := 0; i+len(header) <= len(start); i++ {
		if c := start[i]; (c == 'I' || c == 'W' || c == 'E' || c == 'F') && start[i+5] == ' ' && start[i+8] == ':' && isDigits(start[i+1:i+5]) &&
			(i == 0 || bytes.IndexByte([]byte(" \t:"), start[i-1]) >= 0) {
			return c
		}
	}
	return 0
}

// isError reports whether a record is marked as an error.
func isError(rec *record) bool {
	return klogLevel(rec.raw) == 'E' || klogLevel(rec.raw) == 'F' || hasAny(rec.normal, errorMarks)
}

// failureWords are the words by which a record says that something failed, in normal form.
var failureWords = normalizeAll("error", "failed", "failure", "cannot", "can't", "couldn't", "unable", "fatal", "denied", "refused",
	"timed out", "timeout", "not found", "invalid", "panic", "not supported", "unsupported", "mismatch", "missing", "not approved",
	"expired", "not available", "not allowed", "not valid", "rejected", "does not match", "unauthorized", "forbidden", "[fatal]",
	"crash", "not ready", "unhealthy", "killed", "exceeded", "no route", "unreachable", "does not exist", "no such", "is down",
	"not respond", "conflict", "duplicate", "terminated", "evicted", "could not", "collision", "overloaded", "too long", "exited",
	"aborted", "lost", "wrong", "corrupt", "is in use", "blocked", "constantly", "stuck", "hangs", "failing", "not working")

// harmlessWords mark a record in which such a word means no failure.
var harmlessWords = normalizeAll("system container stats", "nameserver limits", "no relationship found between node", "orphaned pod",
	"failed to process watch event", "failed to open /run/systemd/transient/", "k8slab-trial",
	"summary stats", "update stats for container", "skipping pod synchronization", "container log stats", "can't get disk usage",
	"partial failures", "TLS handshake error", "ensure lease", "failed to get rootfs", "image filesystem", "cadvisor",
	"container factory", "reload cni", "leader election record", "object has been modified", "cannot get PodSandbox",
	"not found: does not exist", "RemoveContainer", "ContainerStatus", "DeleteContainer", "[WARNING", "failed=0", "errors",
	"error=<nil>", "no error", "level=info", "level=warning", "\"level\":\"info\"", "\"level\":\"warn\"", "skip plugin", "successfully",
	"MESSAGE ERROR", "canary", "ip6tables", "legacy-service-account-token-tracking", "FAILED - RETRYING",
	"failed to sync configmap cache", "no retries permitted", "Failed to find module", "service account token has expired",
	"invalid bearer token", "authentication configuration", "untolerated taint {node.kubernetes.io/not-ready", "statuscode: 503")

var warn = []byte("warn")

// reassuring are the words by which a record says that something works, in normal form.
var reassuring = normalizeAll("successfully", "caches are synced", "Healthy ok", "has joined", "is now running", "succeeded",
	"pool is healthy", "0 errors", "Started container", "no issues", "took leadership", "acquired lease", "Active: active (running)",
	"unreachable=0 failed=0")

// person finds the words by which somebody tells a story, which programs do not use.
var person = regexp.MustCompile(`(?i)(?:^|[\s(])(?:I|I'm|I've|I'd|my|we|we're|we've|our|me|us|anyone|somebody|hi|hello|thanks)[\s,.!?]`)

// printedMarks are in what programs print, and hardly in what people write.
const printedMarks = "=\"[]{}/\\|<>_"

// isProse reports whether a record is what somebody tells, not what a program printed. Its words may resemble a cause, but it shows none.
func isProse(raw []byte) bool {
	if readHeader(raw).time != "" || klogLevel(raw) != 0 {
		return false
	}
	text := string(raw)
	const sentence = 8 // words
	return person.MatchString(text) ||
		len(strings.Fields(text)) >= sentence && !strings.ContainsAny(text, printedMarks) && !strings.Contains(text, ": ")
}
