package event

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// screen is as much of a terminal as the live view may use; anything else that
// reaches it is an error, as is a line that wraps.
type screen struct {
	t        *testing.T
	mu       sync.Mutex
	width    int
	cells    [][]rune
	row, col int
	writes   int
}

func newScreen(t *testing.T, width int) *screen {
	return &screen{t: t, width: width, cells: [][]rune{nil}}
}

var control = regexp.MustCompile(`^\x1b\[([0-9]*)([AJK])`)

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	for rest := string(p); rest != ""; {
		if m := control.FindStringSubmatch(rest); m != nil {
			s.control(m[1], m[2])
			rest = rest[len(m[0]):]
			continue
		}
		r := []rune(rest)[0]
		rest = rest[len(string(r)):]
		s.put(r)
	}
	return len(p), nil
}

func (s *screen) control(arg, name string) {
	switch name {
	case "A":
		n, _ := strconv.Atoi(arg)
		if s.row -= n; s.row < 0 {
			s.t.Errorf("the cursor left the screen by %d rows", -s.row)
			s.row = 0
		}
	case "K":
		s.cells[s.row] = nil
	case "J":
		s.cells = s.cells[:s.row+1]
		s.cells[s.row] = s.cells[s.row][:min(s.col, len(s.cells[s.row]))]
	}
}

func (s *screen) put(r rune) {
	switch {
	case r == '\r':
		s.col = 0
	case r == '\n':
		s.row, s.col = s.row+1, 0
		if s.row == len(s.cells) {
			s.cells = append(s.cells, nil)
		}
	case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\u202e':
		s.t.Errorf("control character %q on the screen", r)
	default:
		s.cells[s.row] = append(s.cells[s.row], r)
		if s.col += runeColumns(r); s.col > s.width {
			s.t.Errorf("line %q is wider than %d", string(s.cells[s.row]), s.width)
		}
	}
}

func (s *screen) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, line := range s.cells {
		all = append(all, strings.TrimRight(string(line), " "))
	}
	return all
}

func (s *screen) text() string { return strings.Join(s.lines(), "\n") }
