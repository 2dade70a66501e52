package node

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// grace is how long to wait for a caller's reader or writer that is blocked.
const grace = 100 * time.Millisecond

var errShut = errors.New("command is over")

// gate ends the use of a caller's reader or writer: the goroutines that feed a session may
// outlive the call that started them, but must not touch what the caller owns again.
type gate struct {
	turn chan struct{} // a mutex that can be waited for with a timeout
	over atomic.Bool
}

func newGate() gate { return gate{turn: make(chan struct{}, 1)} }

func (g *gate) do(f func() (int, error)) (int, error) {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	if g.over.Load() {
		return 0, errShut
	}
	return f()
}

func (g *gate) shut() {
	g.over.Store(true)
	timeout := time.NewTimer(grace)
	defer timeout.Stop()
	select {
	case g.turn <- struct{}{}:
		<-g.turn
	case <-timeout.C:
	}
}

// output passes a stream of a command to the caller, and keeps its end for errors.
type output struct {
	gate
	tail tail
	to   io.Writer // may be nil
	err  error     // first error of to; read it only after the command has ended
}

func newOutput(to io.Writer) *output { return &output{gate: newGate(), to: to} }

// Write never fails while the command runs: if the caller's writer fails, such as on a full disk, the command must not block on output that
// nobody reads.
func (o *output) Write(p []byte) (int, error) {
	return o.do(func() (int, error) {
		_, _ = o.tail.Write(p)
		if o.to != nil && o.err == nil {
			_, o.err = o.to.Write(p)
		}
		return len(p), nil
	})
}

// input reads the caller's stdin and reports when that fails.
type input struct {
	gate
	from   io.Reader
	failed func(error)
}

func (i *input) Read(p []byte) (int, error) {
	return i.do(func() (int, error) {
		count, err := i.from.Read(p)
		if err != nil && err != io.EOF {
			i.failed(err)
		}
		return count, err
	})
}

const tailSize = 64 << 10

// tail remembers the last bytes written to it.
type tail struct {
	mu   sync.Mutex
	data []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p[max(0, len(p)-tailSize):]...)
	if len(t.data) > 2*tailSize {
		t.data = append(t.data[:0], t.data[len(t.data)-tailSize:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.data[max(0, len(t.data)-tailSize):])
}
