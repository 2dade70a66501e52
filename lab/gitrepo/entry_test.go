package gitrepo

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestUncommentAndComment(t *testing.T) {
	tests := []struct{ name, entry, commented, active string }{
		{"dash at the key's column", "w3", "resources:\n- w2\n# - w3\n- w4\n", "resources:\n- w2\n- w3\n- w4\n"},
		{"indented", "w3", "resources:\n  - w2\n  # - w3\n", "resources:\n  - w2\n  - w3\n"},
		{"a path", "../nodes/w3", "resources:\n  - ../nodes/w2\n  # - ../nodes/w3\n", "resources:\n  - ../nodes/w2\n  - ../nodes/w3\n"},
		{"no blank", "w3", "resources:\n- w2\n#- w3\n", "resources:\n- w2\n- w3\n"},
		{"no blank, indented", "w3", "resources:\n  - w2\n  #- w3\n", "resources:\n  - w2\n  - w3\n"},
		{"sign before the indentation", "w3", "resources:\n  - w2\n#  - w3\n", "resources:\n  - w2\n  - w3\n"},
		{"sign and blank before the indentation", "w3", "resources:\n  - w2\n#   - w3\n", "resources:\n  - w2\n  - w3\n"},
		{"sign in the place of a blank", "w3", "resources:\n  - w2\n# - w3\n", "resources:\n  - w2\n  - w3\n"},
		{"comment after it", "w3", "resources:\n  - w2\n  # - w3   # worker three\n", "resources:\n  - w2\n  - w3   # worker three\n"},
		{"only item", "w3", "resources:\n  # - w3\nkind: Kustomization\n", "resources:\n  - w3\nkind: Kustomization\n"},
		{"only item, no blank", "w3", "resources:\n#  - w3\nkind: Kustomization\n", "resources:\n - w3\nkind: Kustomization\n"},
		{"first item", "w3", "resources:\n# - w3\n- w4\n", "resources:\n- w3\n- w4\n"},
		{"another list", "w3", "resources:\n- a\ncomponents:\n# - w3\n", "resources:\n- a\ncomponents:\n- w3\n"},
		{"no final newline", "w3", "resources:\n- w2\n# - w3", "resources:\n- w2\n- w3"},
		{"CRLF", "w3", "resources:\r\n- w2\r\n# - w3\r\n- w4\r\n", "resources:\r\n- w2\r\n- w3\r\n- w4\r\n"},
		{"CRLF, no final one", "w3", "resources:\r\n- w2\r\n# - w3 # c\r", "resources:\r\n- w2\r\n- w3 # c\r"},
		{"tabs", "w3", "resources:\n- w2\n#\t- w3\t# three\n", "resources:\n- w2\n- w3\t# three\n"},
		{"blanks at the end", "w3", "resources:\n- w2\n# - w3  \t\n", "resources:\n- w2\n- w3  \t\n"},
		{"quoted", "w3", "resources:\n- w2\n# - \"w3\"\n", "resources:\n- w2\n- \"w3\"\n"},
		{"single quotes", "it's", "resources:\n# - 'it''s'\n", "resources:\n- 'it''s'\n"},
		{"byte order mark", "w3", "\ufeffresources:\n# - w3\n", "\ufeffresources:\n- w3\n"},
		{"document start", "w3", "---\n# all nodes\nresources:\n# - w3\n...\n", "---\n# all nodes\nresources:\n- w3\n...\n"},
		{"names that contain it", "w3", "resources:\n# - w31\n# - ../w3\n# - w3\n# - w3.yaml\n", "resources:\n# - w31\n# - ../w3\n- w3\n# - w3.yaml\n"},
		{"a mention", "w3", "# - w3 is a worker\nresources:\n- w2 # w3 comes next\n# w3\n# - w3\n# - w3: no\n",
			"# - w3 is a worker\nresources:\n- w2 # w3 comes next\n# w3\n- w3\n# - w3: no\n"},
		{"text that looks like it", "w3", "patches:\n- patch: |-\n    # - w3\n    - op: add\nresources:\n# - w3\n",
			"patches:\n- patch: |-\n    # - w3\n    - op: add\nresources:\n- w3\n"},
		{"text that looks like it, otherwise commented", "w3", "patches:\n- |\n  #- w3\nresources:\n# - w3\n",
			"patches:\n- |\n  #- w3\nresources:\n- w3\n"},
		{"comment that is twice one", "w3", "resources:\n# # - w3\n# - w3\n", "resources:\n# # - w3\n- w3\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := uncomment([]byte(tt.commented), tt.entry)
			if err != nil {
				t.Fatal(err)
			}
			if string(e.data) != tt.active {
				t.Errorf("uncommented it is\n%q, wanted\n%q", e.data, tt.active)
			}
			if again, err := uncomment(e.data, tt.entry); again != nil || err != nil {
				t.Errorf("active, it is edited again: %v, %v", again, err)
			}
			back, err := comment(e.data, []byte(tt.commented), tt.entry)
			if err != nil {
				t.Fatal(err)
			}
			if string(back.data) != tt.commented {
				t.Errorf("commented again it is\n%q, wanted\n%q", back.data, tt.commented)
			}
			if again, err := comment(back.data, nil, tt.entry); again != nil || err != nil {
				t.Errorf("commented, it is edited again: %v, %v", again, err)
			}
		})
	}
}

// The backup may be lost, or the line be another one since.
func TestCommentWithoutMemory(t *testing.T) {
	tests := []struct{ name, before, active, want string }{
		{"no backup", "", "resources:\n  - w2\n  - w3\n", "resources:\n  - w2\n  # - w3\n"},
		{"backup is no YAML", "{", "resources:\n  - w3\n", "resources:\n  # - w3\n"},
		{"other lines changed", "resources:\n#  - w3\n  - w2\n", "resources:\n  - w1\n  - w2\n  - w3\n", "resources:\n  - w1\n  - w2\n#  - w3\n"},
		{"the line changed", "resources:\n  #- w3\n", "resources:\n  - w3 # three\n", "resources:\n  # - w3 # three\n"},
		{"two ways to write it", "resources:\n  #- w3\n", "resources:\n  - 'w3'\n", "resources:\n  # - 'w3'\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := comment([]byte(tt.active), []byte(tt.before), "w3")
			if err != nil {
				t.Fatal(err)
			}
			if string(e.data) != tt.want {
				t.Errorf("got\n%q, wanted\n%q", e.data, tt.want)
			}
		})
	}
}

func TestEntryThatCannotBeEdited(t *testing.T) {
	on := func(data []byte, entry string) (*edit, error) { return uncomment(data, entry) }
	off := func(data []byte, entry string) (*edit, error) { return comment(data, nil, entry) }
	tests := []struct {
		name string
		edit func([]byte, string) (*edit, error)
		data string
		kind error
		want []string
	}{
		{"nothing", on, "", ErrNoEntry, []string{`no list has an item "w3"`, "mentioned in: nothing"}},
		{"only mentions", on, "resources:\n- w2 # then w3\n# w3 - later\n", ErrNoEntry, []string{`line 2 "- w2 # then w3"`, `line 3 "# w3 - later"`}},
		{"many mentions", on, strings.Repeat("# w3\n", 12), ErrNoEntry, []string{"line 10", "and more"}},
		{"two comments", on, "resources:\n# - w3\n- w2\n# - 'w3'\n", ErrNoEntry, []string{"a commented item more than once", "line 2", "line 4"}},
		{"active twice", on, "resources:\n- w3\ncomponents:\n- w3\n", ErrNoEntry, []string{"an active item more than once", "line 2", "line 4"}},
		{"not in a list", on, "metadata:\n# - w3\n  name: x\n", ErrNoEntry, []string{`line 2, "# - w3"`, "cannot be uncommented"}},
		{"wrong indentation", on, "resources:\n- w2\n      # - w3\n", ErrNoEntry, []string{`line 3, "      # - w3"`}},
		{"in a text", on, "patches:\n- patch: |\n    # - w3\n", ErrNoEntry, []string{"line 3", "something else would change"}},
		{"what others refer to", on, "a: &x one\nresources:\n# - &x w3\nb: *x\n", ErrNoEntry, []string{"something else would change"}},
		{"list within a list", on, "generators:\n- - a\n  # - w3\n", ErrNoEntry, []string{"line 3"}},
		{"no YAML", on, "resources: [\n# - w3\n", ErrBadFile, []string{"the file is not a kustomization: yaml: "}},
		{"a list", on, "- w2\n# - w3\n", ErrBadFile, nil},
		{"a tab that YAML refuses", on, "resources:\n- w2\n\t# - w3\n", ErrBadFile, []string{"found a tab character"}},
		{"two documents", on, "resources:\n# - w3\n---\na: b\n", ErrBadFile, []string{"something follows"}},
		{"key twice", on, "resources:\n# - w3\nresources:\n- a\n", ErrBadFile, []string{"already defined"}},
		{"off: active twice", off, "resources:\n- w3\n- w3\n", ErrNoEntry, []string{"line 2", "line 3"}},
		{"off: in a line with others", off, "resources: [w2, w3]\n", ErrNoEntry, []string{"not on a line of its own"}},
		{"off: in two lines", off, "resources:\n- >-\n  w3\n", ErrNoEntry, []string{"not on a line of its own"}},
		{"off: text that looks like it", off, "resources: [w3]\npatches:\n- |\n  - w3\n", ErrNoEntry,
			[]string{"line 4", "cannot be commented: something else would change"}},
		{"off: no YAML", off, "resources:\n- w3\n}\n", ErrBadFile, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := tt.edit([]byte(tt.data), "w3")
			if e != nil || !errors.Is(err, tt.kind) {
				t.Fatalf("got %v and the error %v, wanted %v", e, err, tt.kind)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error %q lacks %q", err, want)
				}
			}
		})
	}
}

func TestActiveAlready(t *testing.T) {
	for _, data := range []string{"resources:\n- w3\n", "resources: [w2, \"w3\"]\n", "resources:\n- w3\n# - w3\n", "components:\n- >-\n  w3\n"} {
		if e, err := uncomment([]byte(data), "w3"); e != nil || err != nil {
			t.Errorf("%q is edited: %v, %v", data, e, err)
		}
	}
}

// Whatever the file, an edit changes one line of it, is undone byte for byte, and can be made again after an undoing that knew of nothing.
func FuzzUncomment(f *testing.F) {
	f.Add([]byte("resources:\n- w2\n# - w3\n"), "w3")
	f.Add([]byte("resources:\r\n  - w2\r\n#  - '../w3' # three\r\npatches:\n- |+\n  # - w3\n\n"), "../w3")
	f.Add([]byte("a: &x [1]\nresources:\n#- w3\n#\t- w3\nb: *x\n"), "w3")
	f.Add([]byte("resources:\n  - a\n# - w3\n\u2028# - w3"), "w3")
	f.Fuzz(func(t *testing.T, data []byte, entry string) {
		e, err := uncomment(data, entry)
		if err != nil || e == nil {
			return
		}
		if m, err := parse(e.data, entry); err != nil || m.count != 1 {
			t.Fatalf("%q: the entry is active %d times, %v", e.data, m.count, err)
		}
		oneLine(t, data, e.data)
		back, err := comment(e.data, data, entry)
		if err != nil || !bytes.Equal(back.data, data) {
			t.Fatalf("%q becomes %q and then %v, %v", data, e.data, back, err)
		}
		plain, err := comment(e.data, nil, entry)
		if err != nil {
			t.Fatalf("%q: %v", e.data, err)
		}
		oneLine(t, e.data, plain.data)
		again, err := uncomment(plain.data, entry)
		if err != nil || !bytes.Equal(again.data, e.data) {
			t.Fatalf("%q becomes %q and then %v, %v", e.data, plain.data, again, err)
		}
	})
}

// oneLine checks that the contents differ in one line, and not in its end.
func oneLine(t *testing.T, a, b []byte) {
	t.Helper()
	old, changed := slices.Collect(bytes.Lines(a)), slices.Collect(bytes.Lines(b))
	if len(old) != len(changed) {
		t.Fatalf("%q has other lines than %q", b, a)
	}
	differ := 0
	for i := range old {
		if !bytes.Equal(old[i], changed[i]) {
			differ++
			if ends := func(l []byte) string { return string(l[len(bytes.TrimRight(l, "\r\n")):]) }; ends(old[i]) != ends(changed[i]) {
				t.Errorf("%q ends otherwise than %q", changed[i], old[i])
			}
		}
	}
	if differ != 1 {
		t.Fatalf("%q differs from %q in %d lines", b, a, differ)
	}
}
