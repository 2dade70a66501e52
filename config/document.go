package config

import (
	"cmp"
	"reflect"
	"slices"
)

// Document is a file of another kind, which is read as strictly as a
// cluster.yaml: each problem has its line and field.
type Document struct{ d *document }

// ReadDocument reads the file at path into v, a pointer to a struct with yaml
// tags. Problems are kept in the document.
func ReadDocument(path string, kind Kind, v any) Document {
	d := newDocument(path)
	d.kind = kind
	data, err := read(path)
	if err != nil {
		d.problems = append(d.problems, unreadable(path, err))
	} else if root := d.root(data); root != nil {
		d.lines[""] = root.Line
		d.decode("", root, reflect.ValueOf(v).Elem())
	}
	return Document{d}
}

// Report adds a problem of a field, unless the field or its parent has one.
func (d Document) Report(field, format string, args ...any) {
	if d.d.trusted(field) {
		d.d.report(field, format, args...)
	}
}

// Line is where the field stands or, when it is absent, its nearest parent.
func (d Document) Line(field string) int { return d.d.line(field) }

// Problems are all that were found, in file order.
func (d Document) Problems() Problems {
	slices.SortStableFunc(d.d.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return d.d.problems
}
