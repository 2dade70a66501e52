package backup

import (
	"errors"
	"strings"
	"testing"
)

// An undo saves what is there now before it changes anything, so that it can be undone.
func TestUndo(t *testing.T) {
	s, cp1, w1 := newLab(t)
	b := saved(t, s)
	before := w1.tree()
	w1.write("etc/kubernetes/kubelet.conf", "other", 0o600)
	after := w1.tree()
	c, err := Compare(t.Context(), s, b.ID, nil)
	if err != nil || len(c.Nodes) != 2 || len(c.Nodes[0].Changes) != 0 || len(c.Nodes[1].Changes) != 1 {
		t.Fatalf("%v, %+v", err, c.Nodes)
	}
	c.Nodes = c.Nodes[1:]
	done, err := Undo(t.Context(), s, c)
	if err != nil || len(done) != 1 || len(done[0].Files) != 1 || w1.tree() != before || cp1.changes > 0 {
		t.Errorf("%v, %+v", err, done)
	}
	all, err := List(s.Dir)
	if err != nil || len(all) != 2 || all[0].Verb != "undo" {
		t.Fatalf("%v, %+v", err, all)
	}
	if c, err = Compare(t.Context(), s, all[0].ID, []string{"w1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := Undo(t.Context(), s, c); err != nil || w1.tree() != after {
		t.Errorf("%v: the undo was not undone", err)
	}
	// A node that does not answer is told of, and without a backup of it nothing is changed.
	w1.changes, w1.fail = 0, errors.New("no route to w1")
	if c, err := Compare(t.Context(), s, b.ID, nil); err != nil || c.Nodes[1].Error != "no route to w1" {
		t.Errorf("%v, %+v", err, c.Nodes)
	}
	if _, err := Undo(t.Context(), s, c); err == nil || !strings.Contains(err.Error(), "no backup, so nothing was changed") || w1.changes > 0 {
		t.Errorf("got %v", err)
	}
	if _, err := Compare(t.Context(), s, b.ID, []string{"w2"}); err == nil || !strings.Contains(err.Error(), `no node "w2"`) {
		t.Errorf("got %v", err)
	}
}
