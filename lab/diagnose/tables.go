package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	joining "k8slab/lab/join"
	"k8slab/lab/symptom"
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

func nodeViews(r Report) []nodeView {
	// Where no node has one, the API server was not asked.
	asked := slices.ContainsFunc(r.Nodes, func(n NodeRow) bool { return n.Ready != "" })
	var all []nodeView
	for _, n := range r.Nodes {
		cells := []cell{
			{Label: "Address", Text: orUnknown(n.IP)}, wanted("Machine", n.Machine, "running"), sshCell(n.SSH), readyCell(n.Ready, asked),
			wanted("Kubelet", n.Kubelet, "active"), runtimeCell(n), {Label: "Version", Text: orUnknown(n.Version)},
		}
		all = append(all, nodeView{Name: n.Name, Role: n.Role, Cells: append(cells, measures(n, r.Findings)...)})
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

const answers = "answers"

func sshCell(failure string) cell {
	if failure != "" {
		return cell{Label: "SSH", Text: "no answer", Tone: "bad", Note: failure}
	}
	return cell{Label: "SSH", Text: answers}
}

func readyCell(value string, asked bool) cell {
	c := wanted("Ready", value, "true")
	if value == "" && asked {
		c.Text, c.Tone = "no Node", "bad"
	}
	return c
}

// runtimeCell goes by the check's result: its words are for people.
func runtimeCell(n NodeRow) cell {
	c := cell{Label: "Runtime", Text: orUnknown(n.Runtime)}
	switch joining.Result(n.RuntimeResult) {
	case joining.OK:
		c.Text = answers
	case joining.Warn:
		c.Tone = "warn"
	case joining.Fixable, joining.Blocked:
		c.Tone = "bad"
	}
	return c
}

// measures are the numbers of a node. A node that did not answer has none, and a negative number was not read. Whether one is too high or
// too low the findings say: a limit of the page's own would warn of what the judge finds right.
func measures(n NodeRow, findings []symptom.Finding) []cell {
	known := n.SSH == ""
	measure := func(label, text string, known bool, causes ...symptom.ID) cell {
		if !known {
			return cell{Label: label, Text: unknownText}
		}
		return cell{Label: label, Text: text, Tone: toneOf(findings, n.Name, causes)}
	}
	return []cell{
		measure("Clock", signed(n.ClockOffset), known, symptom.ClockSkew),
		measure("Disk free", percent(n.DiskFree), known && n.DiskFree >= 0, symptom.DiskFull),
		measure("Memory free", percent(n.MemoryFree), known && n.MemoryFree > 0, symptom.OutOfMemory),
		measure("fsync 99 %", seconds(n.FsyncP99), known && n.FsyncP99 > 0, symptom.EtcdSlow),
	}
}

// toneOf is bad or warn where one of the causes was found on the node.
func toneOf(findings []symptom.Finding, node string, causes []symptom.ID) (tone string) {
	for _, f := range findings {
		switch {
		case f.Node != node || !slices.Contains(causes, f.Symptom):
		case f.Level == symptom.Warn:
			tone = cmp.Or(tone, "warn")
		default:
			return "bad"
		}
	}
	return tone
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
