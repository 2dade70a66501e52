package lab

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"path"

	"k8slab/lab/metrics"
)

// WriteOnboardingMetrics puts an onboarding's metrics onto the node, where its node_exporter finds them, in place of those of before. The
// node needs to answer over SSH and not to be a member. A caller should take an error for a warning.
func (l *Lab) WriteOnboardingMetrics(ctx context.Context, name string, m *metrics.Set) error {
	n, err := l.Node(name)
	if err != nil {
		return err
	}
	defer n.Close()
	return putMetrics(ctx, n, m)
}

// copier writes a file on a node as a whole.
type copier interface {
	Copy(ctx context.Context, file string, mode fs.FileMode, content io.Reader) error
}

func putMetrics(ctx context.Context, n copier, m *metrics.Set) error {
	var text bytes.Buffer
	if err := m.Write(&text); err != nil {
		return err
	}
	return n.Copy(ctx, path.Join(metrics.Dir, metrics.OnboardingFile), 0o644, &text)
}
