package config

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode"
)

// Problem is one thing wrong with the file.
type Problem struct {
	File    string // as given by the caller; empty where the message names it
	Line    int    // from 1; 0 when the problem has no line
	Field   string // such as nodes[2].ip; empty for the file as a whole
	Message string // what is wrong and what is accepted, without a line break
}

// Warning is a Problem that does not stop the cluster from being used.
type Warning = Problem

// String gives one line: file:line: field: message.
func (p Problem) String() string {
	s := p.File
	if p.Line > 0 {
		s += ":" + strconv.Itoa(p.Line)
	}
	if p.Field != "" {
		s += ": " + p.Field
	}
	if s == "" {
		return p.Message
	}
	return s + ": " + p.Message
}

// Problems is every problem of one file, in file order.
type Problems []Problem

// Error gives one line per problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Kind is how messages speak of a kind of file.
type Kind struct {
	Name  string // what the file is
	Needs string // what it has at least
	One   string // what a file has one of
	Limit int    // bytes that it may have; 0 is maxSize
}

var clusterFile = Kind{Name: "cluster.yaml", Needs: "nodes with one control plane", One: "cluster"}

// document gathers what is known of one file while it is read.
type document struct {
	file     string
	kind     Kind
	lines    map[string]int  // field path to the line of its key
	bad      map[string]bool // fields whose value cannot be relied on
	problems Problems
	warnings []Warning
}

func newDocument(file string) *document {
	return &document{file: file, kind: clusterFile, lines: map[string]int{}, bad: map[string]bool{}}
}

// report adds a problem with a known field and marks the field as bad, so that
// later checks do not report consequences of the same mistake.
func (d *document) report(field, format string, args ...any) {
	d.bad[field] = true
	d.reportAt(d.line(field), field, format, args...)
}

// reportAt adds a problem without marking any field.
func (d *document) reportAt(line int, field, format string, args ...any) {
	d.problems = append(d.problems, Problem{d.file, line, field, fmt.Sprintf(format, args...)})
}

func (d *document) warn(field, format string, args ...any) {
	d.warnings = append(d.warnings, Problem{d.file, d.line(field), field, fmt.Sprintf(format, args...)})
}

// line is where the field stands or, when it is absent, its nearest parent.
func (d *document) line(field string) int {
	for {
		if line, ok := d.lines[field]; ok || field == "" {
			return line
		}
		field = parent(field)
	}
}

// written says whether the file has the field, as opposed to its default.
func (d *document) written(field string) bool {
	_, ok := d.lines[field]
	return ok
}

// trusted says whether no problem was found in the fields or their parents.
func (d *document) trusted(fields ...string) bool {
	for _, f := range fields {
		for ; f != ""; f = parent(f) {
			if d.bad[f] {
				return false
			}
		}
	}
	return !d.bad[""]
}

// parent turns nodes[2].ip into nodes[2], that into nodes, and that into "".
func parent(field string) string {
	return field[:max(strings.LastIndexAny(field, ".["), 0)]
}

// quote makes a value from the file safe to print: one line, no control
// characters, bounded length.
func quote(s string) string {
	const limit = 60
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "..."
	}
	return strconv.Quote(s)
}

// hidden reports whether something in the text is not seen where it is shown, or makes other text look different.
func hidden(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

func pathProblem(text string) string {
	if text != "" && (!path.IsAbs(text) || hidden(text)) {
		return quote(text) + " is not an absolute path"
	}
	return ""
}
