package diagnose

import (
	"fmt"
	"slices"
	"strings"
)

// portMatrix says which ports open from where to where.
type portMatrix struct {
	To     []string
	Rows   []portsFrom
	Legend []portWord
	Closed []closed
	Total  int // pairs of node and port that were dialled over TCP
	Open   int
}

type portsFrom struct {
	From  string
	Cells []portCell
}

// portCell is what one node found on another.
type portCell struct {
	Self    bool
	Open    int
	Slowest float64 // milliseconds
	Unknown int
	Shut    []portChip
	Note    string
}

// Dialled tells whether there is anything in the cell.
func (c portCell) Dialled() bool { return c.Open+c.Unknown+len(c.Shut) > 0 }

type portChip struct{ Port, Result string }

// Mark tells the results apart without a colour.
func (c portChip) Mark() string { return resultMark(c.Result) }

func resultMark(result string) string {
	switch result {
	case "open":
		return "✓"
	case "refused":
		return "✗"
	case "timeout":
		return "…"
	case "unreachable":
		return "⊘"
	}
	return "?"
}

// portWord explains a port of the matrix.
type portWord struct{ Port, Word string }

var portWords = map[string]string{
	"6443": "API server", "2379": "etcd for clients", "2380": "etcd for peers", "10250": "kubelet", "8472/udp": "pod network (VXLAN)",
	"22": "SSH",
}

// matrixOf lays the ports out; nil when there are none.
func matrixOf(r Report) *portMatrix {
	if len(r.Ports) == 0 {
		return nil
	}
	from, to := orderedNames(r)
	m := &portMatrix{To: to, Closed: closedPorts(r.Ports)}
	for _, f := range from {
		row := portsFrom{From: f}
		for _, t := range to {
			row.Cells = append(row.Cells, portCell{Self: f == t})
		}
		m.Rows = append(m.Rows, row)
	}
	rows := slices.Clone(r.Ports)
	slices.SortStableFunc(rows, func(a, b PortRow) int { return a.Port - b.Port })
	for _, p := range rows {
		if !slices.ContainsFunc(m.Legend, func(w portWord) bool { return w.Port == portName(p) }) {
			m.Legend = append(m.Legend, portWord{portName(p), portWords[portName(p)]})
		}
		m.Rows[slices.Index(from, p.From)].Cells[slices.Index(to, p.To)].add(p)
		if p.Result != "unknown" {
			m.Total++
		}
		if p.Result == "open" {
			m.Open++
		}
	}
	return m
}

// orderedNames are the nodes that dialled and that were dialled, in the order of the report's nodes.
func orderedNames(r Report) (from, to []string) {
	for _, n := range r.Nodes {
		if slices.ContainsFunc(r.Ports, func(p PortRow) bool { return p.From == n.Name }) {
			from = append(from, n.Name)
		}
		if slices.ContainsFunc(r.Ports, func(p PortRow) bool { return p.To == n.Name }) {
			to = append(to, n.Name)
		}
	}
	for _, p := range r.Ports {
		if !slices.Contains(from, p.From) {
			from = append(from, p.From)
		}
		if !slices.Contains(to, p.To) {
			to = append(to, p.To)
		}
	}
	return from, to
}

func (c *portCell) add(p PortRow) {
	note := portName(p) + " " + p.Result
	switch p.Result {
	case "open":
		c.Open++
		c.Slowest = max(c.Slowest, p.Millis)
		note += " in " + seconds(p.Millis/1000)
	case "unknown":
		c.Unknown++
	default:
		c.Shut = append(c.Shut, portChip{portName(p), p.Result})
	}
	c.Note = strings.TrimPrefix(c.Note+", "+note, ", ")
}

// Slow is the slowest connection when it is worth a word.
func (c portCell) Slow() string {
	if c.Slowest < 50 {
		return ""
	}
	return fmt.Sprintf("%.0fms", c.Slowest)
}
