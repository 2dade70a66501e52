package event

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// heartbeat is how long a step may stay silent.
const heartbeat = 10 * time.Second

// Stream hands the events of a run to its sinks, in one order for all of them. It is safe for concurrent use.
type Stream struct {
	mu     sync.Mutex
	sinks  []Sink
	closed bool
}

// NewStream returns a stream that redacts each event's Detail before it reaches any sink. The sinks belong to the stream from here on.
func NewStream(sinks ...Sink) *Stream {
	return &Stream{sinks: sinks}
}

// Close closes the sinks that are io.Closers, in the order they were given. Steps that are still running go on unseen.
func (s *Stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	for _, sink := range s.sinks {
		if c, ok := sink.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// emit reports whether anybody may still be listening. The time is taken under the lock so that every view is in order of time.
func (s *Stream) emit(e Event) bool {
	e.Detail = Redact(e.Detail)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	e.Time = time.Now().Truncate(time.Millisecond)
	for _, sink := range s.sinks {
		sink.Emit(e)
	}
	return true
}

// Step is one piece of work on one node. It is safe for concurrent use, and must be ended: until then it emits a heartbeat whenever it has
// been silent for ten seconds.
type Step struct {
	stream *Stream
	node   string
	phase  string
	limit  time.Duration
	start  time.Time

	mu      sync.Mutex
	last    string
	waiting string
	ended   bool
	beat    *time.Timer
}

// Start emits started. An empty node is the host itself; a zero limit is none.
func (s *Stream) Start(node, phase string, limit time.Duration) *Step {
	st := &Step{stream: s, node: node, phase: phase, limit: limit, start: time.Now()}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.emit(Event{State: Started}) {
		st.beat = time.AfterFunc(heartbeat, st.stillRunning)
	}
	return st
}

// Progress emits progress. It is ignored once the step has ended.
func (st *Step) Progress(format string, args ...any) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.ended {
		return
	}
	detail := fmt.Sprintf(format, args...)
	// Redact before cutting: the first line of a secret is secret too.
	st.last, st.waiting = firstLine(Redact(detail)), ""
	if st.emit(Event{State: Progress, Detail: detail}) {
		st.beat.Reset(heartbeat)
	}
}

// Waiting says why the present work is not done yet. Heartbeats show it until the next Progress, so it may be called at every check.
func (st *Step) Waiting(why error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.waiting = strings.ReplaceAll(Redact(why.Error()), "\n", "; ")
}

// End emits done, or failed with the text of err, and returns err unchanged. Only the first End or EndWith counts.
func (st *Step) End(err error) error {
	if err != nil {
		st.finish(Event{State: Failed, Detail: err.Error()})
	} else {
		st.finish(Event{State: Done})
	}
	return err
}

// EndWith emits done with a detail.
func (st *Step) EndWith(detail string) {
	st.finish(Event{State: Done, Detail: detail})
}

func (st *Step) finish(e Event) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.ended {
		return
	}
	st.ended = true
	if st.beat != nil {
		st.beat.Stop()
	}
	st.emit(e)
}

func (st *Step) stillRunning() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.ended {
		return
	}
	detail := "still running"
	if st.last != "" {
		detail += ": " + st.last
	}
	e := Event{State: Progress, Detail: detail, heartbeat: true}
	if st.waiting != "" {
		e = Event{State: Progress, Detail: strings.TrimPrefix(st.last+": waiting: "+st.waiting, ": ")}
	}
	if st.emit(e) {
		st.beat.Reset(heartbeat)
	}
}

// emit is called with st.mu held, so that a step's events keep their order.
func (st *Step) emit(e Event) bool {
	e.Node, e.Phase, e.Limit = st.node, st.phase, st.limit
	if e.State != Started {
		e.Elapsed = time.Since(st.start)
	}
	return st.stream.emit(e)
}
