package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8slab/lab/atomicfile"
)

func TestTake(t *testing.T) {
	s, cp1, w1 := newLab(t)
	cp1.fail = errors.New("no route to cp1")
	before := w1.tree()
	if err := os.MkdirAll(s.Path("backups", "20200101T000000-up.part"), 0o700); err != nil {
		t.Fatal(err)
	}
	b := saved(t, s)
	if w1.tree() != before || w1.changes > 0 {
		t.Error("it changed the node")
	}
	all, err := List(s.Dir)
	if err != nil || len(all) != 1 || all[0].ID != b.ID || !strings.HasSuffix(b.ID, "-repair") {
		t.Fatalf("%v, %+v", err, all)
	}
	one, err := Load(s.Dir, b.ID)
	if err != nil || one.Cluster != "small" || !strings.Contains(one.Who, "@") || one.EtcdError == "" || one.Etcd != nil || one.Path != s.Path("backups", b.ID) {
		t.Errorf("%v, %+v", err, one)
	}
	lost, kept := one.Nodes[0], one.Nodes[1]
	if lost.Error != "no route to cp1" || lost.File != "" || kept.Files != 11 || kept.Size == 0 || one.Size() != kept.Size || strings.Join(one.Saved(), " ") != "w1" {
		t.Errorf("%+v", one.Nodes)
	}
	err = filepath.WalkDir(s.Path("backups"), func(path string, d fs.DirEntry, err error) error {
		info, _ := d.Info()
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want || strings.HasSuffix(path, ".part") {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// The node that is to be changed must be saved, and what is not complete is no backup.
func TestTakeRefuses(t *testing.T) {
	cutAt := func(most int) func(io.Writer) io.Writer {
		return func(w io.Writer) io.Writer { return &cut{w, most} }
	}
	tests := map[string]struct {
		spoil func(w1 *shellNode)
		want  string
	}{
		"no answer":                    {func(n *shellNode) { n.fail = errors.New("connection refused") }, "save the files of w1: connection refused; next: see that it answers"},
		"cut off in a file":            {func(n *shellNode) { n.filter = cutAt(700) }, "unexpected EOF"},
		"cut off behind a file":        {func(n *shellNode) { n.filter = cutAt(1024) }, "unexpected EOF"},
		"cut off before the mark":      {func(n *shellNode) { n.filter = func(w io.Writer) io.Writer { return noMark{w} } }, "unexpected EOF"},
		"nothing comes":                {func(n *shellNode) { n.filter = cutAt(0) }, "unexpected EOF"},
		"another program's words come": {func(n *shellNode) { n.filter = func(w io.Writer) io.Writer { return says{w} } }, "read the archive"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, _, w1 := newLab(t)
			tt.spoil(w1)
			_, err := Take(t.Context(), s, nil, "labctl repair", nodesOf(t, s, "w1"))
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "nothing was changed") {
				t.Errorf("got %v", err)
			}
			if left, _ := filepath.Glob(s.Path("backups", "*")); len(left) > 0 {
				t.Errorf("left %q", left)
			}
		})
	}
}

// cut loses what comes behind the first bytes.
type cut struct {
	w    io.Writer
	most int
}

func (c *cut) Write(p []byte) (int, error) {
	n := min(len(p), c.most)
	c.most -= n
	_, err := c.w.Write(p[:n])
	return len(p), err
}

type noMark struct{ w io.Writer }

func (n noMark) Write(p []byte) (int, error) {
	_, err := n.w.Write(bytes.ReplaceAll(p, []byte(endMark), nil))
	return len(p), err
}

type says struct{ w io.Writer }

func (s says) Write(p []byte) (int, error) {
	_, err := io.WriteString(s.w, strings.Repeat("Welcome! ", 100))
	return len(p), err
}

// A backup counts when it has its name: one that fails at that moment leaves nothing.
func TestTakeIsAtomic(t *testing.T) {
	s, _, _ := newLab(t)
	defer func(was func(string, string) error) { atomicfile.Rename = was }(atomicfile.Rename)
	atomicfile.Rename = func(from, to string) error {
		if strings.HasSuffix(from, partial) {
			return errors.New("killed")
		}
		return os.Rename(from, to)
	}
	if _, err := Take(t.Context(), s, nil, "up", nil); err == nil {
		t.Error("no error")
	}
	if all, err := List(s.Dir); len(all) > 0 || err != nil {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestKept(t *testing.T) {
	s, _, _ := newLab(t)
	var last Backup
	for i := range kept + 3 {
		last = saved(t, s)
		if all, err := List(s.Dir); err != nil || all[0].ID != last.ID || len(all) != min(i+1, kept) {
			t.Fatalf("%d: %v, %d backups, the newest %s, not %s", i, err, len(all), all[0].ID, last.ID)
		}
	}
	// A damaged one hides no other.
	if err := os.WriteFile(filepath.Join(last.Path, indexFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := List(s.Dir); err == nil || len(all) != kept-1 || !strings.Contains(err.Error(), last.ID+" is damaged") {
		t.Errorf("%v, %d", err, len(all))
	}
	if _, err := Load(s.Dir, "../id"); err == nil {
		t.Error("loaded what is no backup")
	}
	if _, err := Load(s.Dir, fmt.Sprint(last.ID, "x")); err == nil || !strings.Contains(err.Error(), "did you mean") {
		t.Error(err)
	}
}
