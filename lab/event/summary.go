package event

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

const (
	maxPhaseColumn = 40
	maxNodeColumn  = 20
)

type summary struct {
	out    *output
	rows   []*summaryRow
	closed bool
}

type summaryRow struct {
	phase, node string
	start, end  time.Time
	took        time.Duration
	state       State
}

// Summary collects, and on Close writes how long each phase took on each node, in the order of their starts.
func Summary(w io.Writer) Sink {
	return &summary{out: newOutput(w)}
}

func (s *summary) Emit(e Event) {
	phase, node := OneLine(e.Phase), e.who()
	at := slices.IndexFunc(s.rows, func(r *summaryRow) bool {
		return r.phase == phase && r.node == node && r.state != Done && r.state != Failed
	})
	if e.State == Started || at < 0 {
		at = len(s.rows)
		s.rows = append(s.rows, &summaryRow{phase: phase, node: node, start: e.Time.Add(-e.Elapsed)})
	}
	row := s.rows[at]
	row.state, row.took, row.end = e.State, e.Elapsed, e.Time
}

func (s *summary) Close() error {
	if !s.closed && len(s.rows) > 0 {
		s.stopClocks(time.Now())
		s.out.write([]byte(s.table()))
	}
	s.closed = true
	return s.out.close()
}

// stopClocks ends the phases that are still running.
func (s *summary) stopClocks(now time.Time) {
	for _, r := range s.rows {
		if r.state != Done && r.state != Failed {
			r.took, r.end = now.Sub(r.start), now
		}
	}
}

// table keeps the nodes of a phase together: that is what gets compared.
func (s *summary) table() string {
	rows := slices.Clone(s.rows)
	first := map[string]int{}
	for i, r := range s.rows {
		if _, ok := first[r.phase]; !ok {
			first[r.phase] = i
		}
	}
	slices.SortStableFunc(rows, func(a, b *summaryRow) int { return first[a.phase] - first[b.phase] })

	phaseWidth, nodeWidth := Columns("phase"), Columns("node")
	for _, r := range rows {
		phaseWidth = min(maxPhaseColumn, max(phaseWidth, Columns(r.phase)))
		nodeWidth = min(maxNodeColumn, max(nodeWidth, Columns(r.node)))
	}
	var b strings.Builder
	line := func(phase, node, duration, note string) {
		text := fmt.Sprintf("%s  %s  %7s  %s", pad(cut(phase, phaseWidth), phaseWidth), pad(cut(node, nodeWidth), nodeWidth), duration, note)
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	line("phase", "node", "time", "")
	for i, r := range rows {
		phase := r.phase
		if i > 0 && rows[i-1].phase == phase {
			phase = ""
		}
		line(phase, r.node, took(r.took), r.note())
	}
	line("total", "", took(s.total()), "")
	return b.String()
}

func (r *summaryRow) note() string {
	switch r.state {
	case Done:
		return ""
	case Failed:
		return "failed"
	}
	return "unfinished"
}

// total is the time on the wall, not the sum: steps overlap.
func (s *summary) total() time.Duration {
	start, end := s.rows[0].start, s.rows[0].end
	for _, r := range s.rows {
		if r.start.Before(start) {
			start = r.start
		}
		if r.end.After(end) {
			end = r.end
		}
	}
	return end.Sub(start)
}
