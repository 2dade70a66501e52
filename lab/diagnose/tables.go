package diagnose

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// cell is a value of a table with what is to be thought of it.
type cell struct {
	Label string // of the column, for where columns do not fit
	Text  string
	Tone  string // "", good, warn or bad
	Note  string // in full
}

// Mark says the tone without a colour.
func (c cell) Mark() string { return map[string]string{"warn": "!", "bad": "✗"}[c.Tone] }

// Class is the tone, and whether the text needs room.
func (c cell) Class() string {
	if len(c.Text) > 16 || c.Note != "" {
		return strings.TrimSpace(c.Tone + " long")
	}
	return c.Tone
}

// nodeView is a row of the table of nodes.
type nodeView struct {
	Name  string
	Role  string
	Cells []cell
}

const unknownText = "–"

func nodeViews(rows []NodeRow) []nodeView {
	var all []nodeView
	for _, n := range rows {
		v := nodeView{Name: n.Name, Role: n.Role, Cells: []cell{
			{Label: "Address", Text: orUnknown(n.IP)},
			wanted("Machine", n.Machine, "running"),
			wanted("SSH", n.SSH, ""),
		}}
		v.Cells[2].Text = "answers"
		if n.SSH != "" {
			v.Cells[2].Text = "no answer"
			v.Cells[2].Note = n.SSH
		}
		v.Cells = append(v.Cells, readyCell(n.Ready), wanted("Kubelet", n.Kubelet, "active", "running"),
			wanted("Runtime", n.Runtime, "ready", "active", "running", "ok"), cell{Label: "Version", Text: orUnknown(n.Version)})
		v.Cells = append(v.Cells, measures(n)...)
		all = append(all, v)
	}
	return all
}

func orUnknown(s string) string {
	if s == "" {
		return unknownText
	}
	return s
}

// wanted is bad unless it is one of the good values; what is not known is neither.
func wanted(label, value string, good ...string) cell {
	c := cell{Label: label, Text: orUnknown(value)}
	if value != "" && !slices.Contains(good, strings.ToLower(value)) {
		c.Tone = "bad"
	}
	return c
}

func readyCell(value string) cell {
	c := wanted("Ready", value, "true")
	if value == "" {
		c.Text = "no Node"
		c.Tone = "bad"
	}
	return c
}

// measures are the numbers of a node. A node that did not answer has none, and a negative number was not read.
func measures(n NodeRow) []cell {
	known := n.SSH == ""
	off := math.Abs(n.ClockOffset)
	return []cell{
		measure("Clock", signed(n.ClockOffset), known, off > 0.5, off > 5),
		measure("Disk free", percent(n.DiskFree), known && n.DiskFree >= 0, n.DiskFree < 0.15, n.DiskFree < 0.05),
		measure("Memory free", percent(n.MemoryFree), known && n.MemoryFree > 0, n.MemoryFree < 0.1, n.MemoryFree < 0.03),
		measure("fsync 99 %", seconds(n.FsyncP99), known && n.FsyncP99 > 0, n.FsyncP99 > 0.01, n.FsyncP99 > 0.1),
	}
}

func measure(label, text string, known, warn, bad bool) cell {
	c := cell{Label: label, Text: text}
	switch {
	case !known:
		c.Text = unknownText
	case bad:
		c.Tone = "bad"
	case warn:
		c.Tone = "warn"
	}
	return c
}

func signed(s float64) string {
	switch {
	case math.Abs(s) < 0.0005:
		return "0ms"
	case s > 0:
		return "+" + seconds(s)
	}
	return seconds(s)
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// memberView is a member of etcd with its bar.
type memberView struct {
	MemberRow
	Title string
	Role  string
	Tone  string
	Share int
	Size  string
}

func memberViews(rows []MemberRow) []memberView {
	var all []memberView
	for _, m := range rows {
		v := memberView{MemberRow: m, Title: m.title(), Role: "voter", Tone: "good", Share: m.share(), Size: size(m.DBSize)}
		switch {
		case m.Leader:
			v.Role = "leader"
		case m.Learner:
			v.Role, v.Tone = "learner", "warn"
		}
		if m.Name == "" && m.Node == "" {
			v.Title = "no name"
		}
		if m.Error != "" || !m.Started || len(m.Alarms) > 0 {
			v.Tone = "bad"
		}
		all = append(all, v)
	}
	return all
}

// Moving tells whether the bar means anything.
func (m memberView) Moving() bool { return m.Started && m.Error == "" && m.leaderIndex() > 0 }

// Leaders is the leader's index.
func (m memberView) Leaders() uint64 { return m.leaderIndex() }

// Said is how far the member is, in words.
func (m memberView) Said() string {
	if m.Learner || m.Error != "" || !m.Started {
		return m.progress()
	}
	if m.Behind > 0 {
		return fmt.Sprintf("%d raft entries, %d behind the leader", m.RaftIndex, m.Behind)
	}
	return fmt.Sprintf("%d raft entries", m.RaftIndex)
}

// Promotable is where the bar of a learner is marked.
func (m memberView) Promotable() int { return promotable }

func size(bytes int64) string {
	switch {
	case bytes <= 0:
		return ""
	case bytes < 1<<20:
		return fmt.Sprintf("%.0f KiB", float64(bytes)/(1<<10))
	case bytes < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}
