package metrics

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"path"
)

// copier writes a file on a node as a whole.
type copier interface {
	Copy(ctx context.Context, file string, mode fs.FileMode, content io.Reader) error
}

// Put writes the metrics into a file of the node, where its node_exporter finds them.
func (m *Set) Put(ctx context.Context, n copier, file string) error {
	var text bytes.Buffer
	if err := m.Write(&text); err != nil {
		return err
	}
	return n.Copy(ctx, path.Join(Dir, file), 0o644, &text)
}
