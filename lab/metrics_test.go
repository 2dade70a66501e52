package lab

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"testing"

	"k8slab/lab/metrics"
)

type copied struct {
	file, content string
	mode          fs.FileMode
}

func (c *copied) Copy(_ context.Context, file string, mode fs.FileMode, content io.Reader) error {
	text, err := io.ReadAll(content)
	*c = copied{file, string(text), mode}
	return err
}

func TestOnboardingMetrics(t *testing.T) {
	m := &metrics.Set{}
	m.Gauge("k8slab_x", "X.", 1)
	var got copied
	want := copied{"/var/lib/k8slab/textfile/k8slab_onboarding.prom", "# HELP k8slab_x X.\n# TYPE k8slab_x gauge\nk8slab_x 1\n", 0o644}
	if err := putMetrics(t.Context(), &got, m); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if err := newLab(t, small).WriteOnboardingMetrics(t.Context(), "cp1", m); !errors.Is(err, ErrNotUp) {
		t.Errorf("without a lab: %v", err)
	}
}
