package event

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	tick         = 250 * time.Millisecond
	defaultWidth = 80
)

// terminal redraws its block of lines in place. It needs the lines below the cursor for itself, and a screen with more rows than there are
// nodes. How a step ended goes above the block, whole, when its line gets another use.
type terminal struct {
	width func() int
	stop  chan struct{}
	idle  chan struct{}

	mu     sync.Mutex
	out    *output
	nodes  []*nodeLine
	shown  []string
	wide   int
	closed bool
}

// Terminal shows one live line per node, in place. It asks for the width before
// each frame, to follow a resized window; nil, zero or less means unknown.
func Terminal(w io.Writer, width func() int) Sink {
	t := &terminal{width: width, out: newOutput(w), stop: make(chan struct{}), idle: make(chan struct{})}
	go t.run()
	return t
}

func (t *terminal) run() {
	defer close(t.idle)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-t.stop:
			return
		case <-ticker.C:
			t.mu.Lock()
			t.draw()
			t.mu.Unlock()
		}
	}
}

func (t *terminal) Emit(e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	who := e.who()
	at := slices.IndexFunc(t.nodes, func(n *nodeLine) bool { return n.name == who })
	if at < 0 {
		at = len(t.nodes)
		t.nodes = append(t.nodes, &nodeLine{name: who})
	}
	t.nodes[at].update(e)
	t.draw()
}

// Close leaves the final frame on the screen, with the whole text of the steps that ended, and the cursor below it.
func (t *terminal) Close() error {
	t.mu.Lock()
	wasClosed := t.closed
	t.closed = true
	t.mu.Unlock()
	if !wasClosed {
		close(t.stop)
	}
	<-t.idle
	t.mu.Lock()
	defer t.mu.Unlock()
	if !wasClosed {
		t.draw(t.finish(t.columns())...)
	}
	return t.out.close()
}

// finish puts above the final frame what it would cut, or what a step that still runs would hide. It leaves out failures, because the
// command's error has them.
func (t *terminal) finish(width int) (above []string) {
	frame := t.frame(time.Now(), width)
	var stay []*nodeLine
	for i, n := range t.nodes {
		runs := len(n.steps) > 0
		lost := n.last.state == Done && (strings.HasSuffix(frame[i], "…") || strings.Contains(strings.TrimSpace(n.last.detail), "\n"))
		if runs || lost {
			n.replace(n.last)
		}
		if runs || !lost {
			stay = append(stay, n)
		}
	}
	above = t.replaced(width)
	t.nodes = stay
	return above
}

func (t *terminal) columns() int {
	width := 0
	if t.width != nil {
		width = t.width()
	}
	if width <= 0 {
		width = defaultWidth
	}
	return width
}

// draw writes lines that stay and a frame below them, unless the screen already shows it.
func (t *terminal) draw(above ...string) {
	width := t.columns()
	above = append(above, t.replaced(width)...)
	frame := t.frame(time.Now(), width)
	if len(above) == 0 && width == t.wide && slices.Equal(frame, t.shown) {
		return
	}
	var b strings.Builder
	if up := rows(t.shown, width); up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	b.WriteString("\r")
	for _, line := range slices.Concat(above, frame) {
		// Cleared before and not after: behind a line that fills the width, the cursor still stands on its last cell.
		b.WriteString("\x1b[2K" + line + "\n")
	}
	b.WriteString("\x1b[J")
	t.out.write([]byte(b.String()))
	t.shown, t.wide = frame, width
}

// replaced returns, and forgets, what is to go above the block.
func (t *terminal) replaced(width int) (above []string) {
	for _, n := range t.nodes {
		for _, st := range n.replaced {
			above = append(above, st.whole(n.name, width)...)
		}
		n.replaced = nil
	}
	return above
}

// rows is the height of an earlier frame, whose lines a window that has become narrower has wrapped.
func rows(frame []string, width int) int {
	n := 0
	for _, line := range frame {
		n += max(1, (Columns(line)+width-1)/width)
	}
	return n
}

func (t *terminal) frame(now time.Time, width int) []string {
	nameWidth, timeWidth := 0, 0
	times := make([]string, len(t.nodes))
	for i, n := range t.nodes {
		times[i] = n.current().time(now)
		nameWidth = max(nameWidth, Columns(n.name))
		timeWidth = max(timeWidth, Columns(times[i]))
	}
	nameWidth = min(nameWidth, max(4, width/3))
	frame := make([]string, len(t.nodes))
	for i, n := range t.nodes {
		// The time stands before the texts: it is short, and what is cut at the right edge should be the least of them.
		line := pad(cut(n.name, nameWidth), nameWidth) + "  " + pad(times[i], timeWidth) + "  " + n.current().text()
		frame[i] = cut(line, width)
	}
	return frame
}
