package backup

import (
	"context"

	"k8slab/config"
	"k8slab/lab/session"
)

// Comparison is how nodes differ from a backup.
type Comparison struct {
	Backup Backup        `json:"backup"`
	Nodes  []NodeChanges `json:"nodes"`
}

// NodeChanges is how one of them differs.
type NodeChanges struct {
	Node    string   `json:"node"`
	Changes []Change `json:"changes"`
	Error   string   `json:"error,omitempty"` // why that is not known
}

// Compare says how the nodes, without names all that the backup has, differ from it.
func Compare(ctx context.Context, s *session.Session, id string, names []string) (c Comparison, err error) {
	if c.Backup, err = Load(s.Dir, id); err != nil {
		return c, err
	}
	if len(names) == 0 {
		names = c.Backup.Saved()
	}
	for _, name := range names {
		if _, err := c.Backup.node(name); err != nil {
			return c, err
		}
		n := NodeChanges{Node: name}
		if n.Changes, err = Diff(ctx, s, c.Backup, name); err != nil {
			n.Error = err.Error()
		}
		c.Nodes = append(c.Nodes, n)
	}
	return c, context.Cause(ctx)
}

// Undo puts back, or removes, what the comparison lists, node by node. What is there now is saved first, so that this can be undone too.
func Undo(ctx context.Context, s *session.Session, c Comparison) (done []Restored, err error) {
	var nodes []config.Node
	for _, w := range c.Nodes {
		n, err := s.Member(w.Node)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	admin, err := s.AnyAdmin(ctx)
	if err != nil {
		admin = nil // a cluster that does not answer may need this most
	} else {
		defer admin.Close()
	}
	if _, err := Take(ctx, s, admin, "undo", nodes); err != nil {
		return nil, err
	}
	for _, w := range c.Nodes {
		var paths []string
		for _, change := range w.Changes {
			paths = append(paths, change.Path)
		}
		one, err := Restore(ctx, s, c.Backup, w.Node, paths)
		if done = append(done, one); err != nil {
			return done, err
		}
	}
	return done, nil
}
