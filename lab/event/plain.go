package event

import (
	"io"
	"strings"
)

type plain struct {
	out  *output
	node int // the widest node name so far
}

// Plain writes a line per event: time, node, phase, and what happened. Further lines of a detail follow indented.
func Plain(w io.Writer) Sink {
	return &plain{out: newOutput(w), node: len(hostName)}
}

func (p *plain) Emit(e Event) {
	who := e.who()
	p.node = max(p.node, Columns(who))
	text := lines(happened(e))
	head := e.Time.Format("15:04:05 ") + pad(who, p.node) + " "

	var b strings.Builder
	b.WriteString(head + OneLine(e.Phase) + ": " + text[0] + "\n")
	for _, line := range text[1:] {
		b.WriteString(strings.TrimRight(strings.Repeat(" ", Columns(head)+2)+line, " ") + "\n")
	}
	p.out.write([]byte(b.String()))
}

func (p *plain) Close() error { return p.out.close() }

func happened(e Event) string {
	switch e.State {
	case Started:
		if e.Limit > 0 {
			return "started (limit " + limitText(e.Limit) + ")"
		}
		return "started"
	case Progress:
		// The time goes on the first line, where it does not look like output.
		first, rest, _ := strings.Cut(strings.Trim(e.Detail, "\r\n"), "\n")
		first = strings.TrimRight(first, "\r ")
		return strings.TrimSpace(first+" ("+running(e.Elapsed, e.Limit)+")") + "\n" + rest
	case Done:
		return withDetail("done in "+took(e.Elapsed), e.Detail)
	case Failed:
		return withDetail("failed after "+took(e.Elapsed), e.Detail)
	}
	return withDetail(string(e.State), e.Detail)
}

func withDetail(text, detail string) string {
	if detail = strings.Trim(detail, "\r\n"); detail == "" {
		return text
	}
	return text + ": " + detail
}
