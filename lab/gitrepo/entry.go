package gitrepo

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// line is one line of a file, without its end.
type line struct {
	number     int // from 1
	start, end int // in bytes of the file
	text       string
}

func split(data []byte) []line {
	var all []line
	start := 0
	for text := range strings.Lines(string(data)) {
		bare := strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
		all = append(all, line{number: len(all) + 1, start: start, end: start + len(bare), text: bare})
		start += len(text)
	}
	return all
}

// with is the file with another text of the line, and every other byte as it was.
func (l line) with(text string, data []byte) []byte {
	return slices.Concat(data[:l.start], []byte(text), data[l.end:])
}

const blanks = " \t"

// uncommented returns the texts that a commented item may have had, the likeliest first: before the item, somebody put "# ", or only "#",
// or replaced a blank by "#". YAML decides which one fits. There are none unless the comment has the entry.
func (l line) uncommented(entry string) []string {
	rest := strings.TrimLeft(l.text, blanks)
	lead := l.text[:len(l.text)-len(rest)]
	rest, ok := strings.CutPrefix(rest, "#")
	item := strings.TrimLeft(rest, blanks)
	if !ok || !isItem(item, entry) {
		return nil
	}
	texts := []string{lead + rest, lead + " " + rest}
	if item != rest {
		texts = slices.Insert(texts, 0, lead+rest[1:])
	}
	return texts
}

// commented puts a comment before the item.
func (l line) commented() string {
	item := strings.TrimLeft(l.text, blanks)
	return strings.TrimSuffix(l.text, item) + "# " + item
}

// isItem reports whether a text, from its dash on, is a list's item with the value of the entry, and perhaps a comment.
func isItem(text, entry string) bool {
	var list []any
	return strings.HasPrefix(text, "- ") && yaml.Unmarshal([]byte(text), &list) == nil && len(list) == 1 && list[0] == any(entry)
}

// meaning is the content of a kustomization without the entry, and how often the entry is an element of one of its lists.
type meaning struct {
	rest  map[string]any
	count int
}

func parse(data []byte, entry string) (meaning, error) {
	var m meaning
	dec := yaml.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&m.rest); err != nil && !errors.Is(err, io.EOF) {
		return m, because(ErrBadFile, err.Error())
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return m, because(ErrBadFile, "something follows its first document")
	}
	for key, value := range m.rest {
		if list, ok := value.([]any); ok {
			others := slices.DeleteFunc(slices.Clone(list), func(v any) bool { return v == any(entry) })
			m.count += len(list) - len(others)
			m.rest[key] = others
			if len(others) == 0 {
				m.rest[key] = nil // a list whose every item is commented
			}
		}
	}
	return m, nil
}

// edit is a file after one line was changed.
type edit struct {
	line line
	text string // the line's new one
	data []byte
}

// try changes the line to the first of the texts with which the entry occurs that often and nothing else changes. Otherwise the error is
// that of the first text; without texts there is neither an edit nor an error.
func (m meaning) try(l line, texts []string, data []byte, entry string, count int) (*edit, error) {
	var first error
	for _, text := range texts {
		e := &edit{line: l, text: text, data: l.with(text, data)}
		now, err := parse(e.data, entry)
		switch {
		case err == nil && now.count == count && reflect.DeepEqual(now.rest, m.rest):
			return e, nil
		case err == nil:
			err = errors.New("something else would change")
		}
		first = cmp.Or(first, err)
	}
	return nil, first
}

// mostCandidates is how many commented lines are tried.
const mostCandidates = 10

// uncomment makes the entry an element of the list in which it is commented. It returns no edit if the entry is active already.
func uncomment(data []byte, entry string) (*edit, error) {
	m, err := parse(data, entry)
	switch {
	case err != nil:
		return nil, err
	case m.count > 1:
		return nil, several("an active item", data, entry, active)
	case m.count == 1:
		return nil, nil
	}
	var found []*edit
	var wrong []string
	candidates := 0
	for _, l := range split(data) {
		texts := l.uncommented(entry)
		if len(texts) > 0 {
			if candidates++; candidates > mostCandidates { // each is tried on the whole file
				return nil, because(ErrNoEntry, fmt.Sprintf("more than %d lines have it as a comment", mostCandidates))
			}
		}
		e, err := m.try(l, texts, data, entry, 1)
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Sprintf("line %d, %q, cannot be uncommented: %v", l.number, l.text, err))
		case e != nil:
			found = append(found, e)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, several("a commented item", data, entry, func(l line, _ string) bool {
			return slices.ContainsFunc(found, func(e *edit) bool { return e.line.number == l.number })
		})
	case len(wrong) > 0:
		return nil, because(ErrNoEntry, strings.Join(wrong, "; "))
	}
	return nil, missing(data, entry)
}

// comment comments an active entry. If the line is still as the activation left it, it becomes what it was before. It returns no edit if
// the entry is not active.
func comment(data, before []byte, entry string) (*edit, error) {
	m, err := parse(data, entry)
	switch {
	case err != nil:
		return nil, err
	case m.count > 1:
		return nil, several("an active item", data, entry, active)
	case m.count == 0:
		return nil, nil
	}
	made, _ := uncomment(before, entry) // nil for a file that does not tell
	var wrong []string
	for _, l := range split(data) {
		if !active(l, entry) {
			continue
		}
		text := l.commented()
		if made != nil && made.text == l.text {
			text = made.line.text
		}
		e, err := m.try(l, []string{text}, data, entry, 0)
		if err == nil {
			return e, nil
		}
		wrong = append(wrong, fmt.Sprintf("line %d, %q, cannot be commented: %v", l.number, l.text, err))
	}
	if len(wrong) > 0 {
		return nil, because(ErrNoEntry, strings.Join(wrong, "; "))
	}
	return nil, fmt.Errorf("%w: %q is active, but not on a line of its own", ErrNoEntry, entry)
}

// active reports whether a line looks like the entry's item.
func active(l line, entry string) bool { return isItem(strings.TrimLeft(l.text, blanks), entry) }

// quote lists the lines for a message, up to ten of them.
func quote(data []byte, wanted func(line) bool) string {
	var shown []string
	for _, l := range split(data) {
		switch {
		case !wanted(l):
		case len(shown) == 10:
			return strings.Join(shown, ", ") + " and more"
		default:
			shown = append(shown, fmt.Sprintf("line %d %q", l.number, cut(l.text, 100)))
		}
	}
	return strings.Join(shown, ", ")
}

func several(what string, data []byte, entry string, is func(line, string) bool) error {
	return fmt.Errorf("%w: %q is %s more than once: %s", ErrNoEntry, entry, what, quote(data, func(l line) bool { return is(l, entry) }))
}

func missing(data []byte, entry string) error {
	mentions := quote(data, func(l line) bool { return strings.Contains(l.text, entry) })
	return fmt.Errorf("%w: no list has an item %q, commented or not; it is mentioned in: %s", ErrNoEntry, entry, cmp.Or(mentions, "nothing"))
}
