package join

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"k8slab/lab/event"
)

// tailLines is how many of kubeadm's last readable lines an Outcome carries.
const tailLines = 25

// output keeps what kubeadm said: all of it, redacted, in a log, and the end of what people can read for the Outcome.
type output struct {
	log  io.Writer // may be nil
	tail []string
	key  bool // within a private key, which is hidden as a whole
}

func (o *output) add(raw string, l line) {
	text := o.redact(raw)
	if o.log != nil {
		_, _ = fmt.Fprintln(o.log, text) // kubeadm goes on without its log
	}
	if !l.readable() {
		return
	}
	o.tail = append(o.tail, event.Redact(strings.TrimRight(text, " \t\r")))
	if len(o.tail) > tailLines {
		o.tail = o.tail[1:]
	}
}

// redact is event.Redact for text that comes line by line.
func (o *output) redact(s string) string {
	inside := o.key
	if strings.Contains(s, "PRIVATE KEY-----") {
		o.key = strings.Contains(s, "-----BEGIN")
	}
	if inside {
		return "***"
	}
	return event.Redact(s)
}

func (o *output) text() string { return strings.Join(o.tail, "\n") }

// quietFor is how long a line that repeats itself is not shown again.
const quietFor = 10 * time.Second

// repeats lets a line through once, and again after quietFor with a count of what was left out: kubeadm retries twice a second.
type repeats struct {
	now  func() time.Time
	seen map[string]*repeated
}

type repeated struct {
	shown time.Time
	more  int
}

var digits = regexp.MustCompile(`[0-9]+(?:\.[0-9]+)?`)

func newRepeats() *repeats { return &repeats{now: time.Now, seen: map[string]*repeated{}} }

// show returns the text to show, "" for nothing.
func (r *repeats) show(text string) string {
	key := digits.ReplaceAllString(text, "0")
	now := r.now()
	last := r.seen[key]
	if last == nil {
		r.seen[key] = &repeated{shown: now}
		return text
	}
	if now.Sub(last.shown) < quietFor {
		last.more++
		return ""
	}
	more := last.more + 1
	*last = repeated{shown: now}
	return fmt.Sprintf("%s (%d times more)", text, more)
}
