package lab

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"k8slab/lab/labtest"
	"k8slab/lab/metrics"
	"k8slab/lab/state"
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
	if err := m.Put(t.Context(), &got, metrics.OnboardingFile); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if err := newLab(t, labtest.Small).WriteOnboardingMetrics(t.Context(), "cp1", m); !errors.Is(err, state.ErrNotUp) {
		t.Errorf("without a lab: %v", err)
	}
}

func TestDownDismisses(t *testing.T) {
	l := newLab(t, labtest.Onboard)
	if err := l.Admit("w2"); err != nil {
		t.Fatal(err)
	}
	if err := l.Down(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if now, err := state.Read(l.described); err != nil || memberNames(now.Cluster) != "cp1, w1" {
		t.Errorf("after down: %s, %v", memberNames(now.Cluster), err)
	}
}

func TestMachinesNeedALab(t *testing.T) {
	l := newLab(t, labtest.Onboard)
	_, idErr := l.ID()
	for _, err := range []error{l.MakeMachine(t.Context(), "w2"), l.RemoveMachine(t.Context(), "w2"), idErr} {
		if !errors.Is(err, state.ErrNotUp) {
			t.Errorf("got %v, want state.ErrNotUp", err)
		}
	}
	if now, err := state.Read(l.described); err != nil || memberNames(now.Cluster) != "cp1, w1" {
		t.Errorf("admitted without a lab: %s, %v", memberNames(now.Cluster), err)
	}
	if err := l.MakeMachine(t.Context(), "w1"); err == nil || !strings.Contains(err.Error(), "onboard: true") {
		t.Errorf("w1: got %v", err)
	}
}

// An onboarding admits a node and joins it with one Lab, which must not go by what it found before.
func TestJoinAfterAdmission(t *testing.T) {
	l := madeLab(t)
	if err := l.Admit("w2"); err != nil {
		t.Fatal(err)
	}
	if err := l.Join(t.Context(), "w2"); err == nil || strings.Contains(err.Error(), "is to be onboarded") { // no libvirt answers here
		t.Errorf("a member: %v", err)
	}
	if err := l.Dismiss("w2"); err != nil {
		t.Fatal(err)
	}
	if err := l.Join(t.Context(), "w2"); err == nil || !strings.Contains(err.Error(), "is to be onboarded") {
		t.Errorf("no member any more: %v", err)
	}
}
