package main

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"k8slab/lab/event"
	"k8slab/lab/onboard"
)

// levelLog writes events as lines of a log: the time, the level, the node, the phase and the text.
type levelLog struct{ w io.WriteCloser }

// newLevelLog creates a log that only the user can read. Its directory exists.
func newLevelLog(path string) (event.Sink, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("run log: %w", err)
	}
	return levelLog{f}, nil
}

func (l levelLog) Emit(e event.Event) {
	text := string(e.State)
	if e.Detail != "" {
		text = e.Detail
	}
	if e.State == event.Done || e.State == event.Failed {
		text = fmt.Sprintf("%s (%s)", text, e.Elapsed.Round(100*time.Millisecond))
	}
	// An event that cannot be written here is in the other log.
	_, _ = fmt.Fprintf(l.w, "%s %-8s %s %s: %s\n", e.Time.UTC().Format("2006-01-02T15:04:05.000Z"), onboard.Level(e), event.OneLine(e.Node),
		event.OneLine(e.Phase), event.OneLine(text))
}

func (l levelLog) Close() error { return l.w.Close() }

// withoutDebug drops debug events.
type withoutDebug struct{ event.Sink }

func (s withoutDebug) Emit(e event.Event) {
	if onboard.Level(e) != "DEBUG" {
		s.Sink.Emit(e)
	}
}

// Close closes the wrapped sink.
func (s withoutDebug) Close() error {
	if c, ok := s.Sink.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
