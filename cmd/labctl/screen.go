package main

import (
	"bytes"
	"io"
	"strings"

	"k8slab/lab/event"
)

// screen prints texts for people. They quote nodes, pods and clusters, which must not move the cursor, set a title or change colours, so each line
// goes through event.OneLine. screen keeps the first error.
type screen struct {
	to   io.Writer
	rest []byte
	err  error
}

func (s *screen) Write(p []byte) (int, error) {
	s.rest = append(s.rest, p...)
	for s.err == nil {
		line, rest, found := bytes.Cut(s.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		s.rest = rest
		_, s.err = io.WriteString(s.to, event.OneLine(string(line))+"\n")
	}
	return 0, s.err
}

// close prints a last line without a newline.
func (s *screen) close() error {
	if len(s.rest) > 0 && s.err == nil {
		_, s.err = io.WriteString(s.to, event.OneLine(string(s.rest)))
	}
	return s.err
}

// shown is an error's text for people: without secrets, and with its further lines indented, so that none looks like a message of labctl.
func shown(err error) string {
	lines := strings.Split(strings.TrimRight(event.Redact(err.Error()), "\n"), "\n")
	for i, line := range lines {
		lines[i] = event.OneLine(line)
		if i > 0 && !strings.HasPrefix(line, " ") {
			lines[i] = "  " + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}
