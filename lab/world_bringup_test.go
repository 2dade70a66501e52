package lab

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"k8slab/config"
	"k8slab/lab/bringup"
	"k8slab/lab/labtest"
	"k8slab/lab/symptom"
)

func joinSymptom(id string) symptom.ID { return symptom.ID(id) }

// inWorld runs the test with time of its own.
func inWorld(t *testing.T, file string, edit func(*config.Cluster), test func(*testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, file, edit)
		test(t, w)
		if w.broken != nil {
			t.Error(w.broken)
		}
	})
}

// wantHealthy wants the proof of the lab to hold, and nothing of its making to be left.
func (w *world) wantHealthy() {
	w.t.Helper()
	st, err := w.lab.Status(w.t.Context())
	if err != nil || !st.Healthy {
		w.t.Errorf("status: %v, %+v", err, st.Problems)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	left := slices.DeleteFunc(w.tokens(), func(t string) bool { return w.expire && strings.HasPrefix(t, "Proxy for managing TTL") })
	if len(left) > 0 {
		w.t.Errorf("tokens are left: %q", left)
	}
}

func TestUpOfNothing(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		if err := w.lab.Up(t.Context(), bringup.StageProof); err != nil {
			t.Fatal(err)
		}
		w.wantHealthy()
		// Control planes come one after another, in the order of cluster.yaml.
		if cps := slices.DeleteFunc(slices.Clone(w.joins), func(n string) bool { return strings.HasPrefix(n, "w") }); !slices.Equal(cps, []string{"cp2", "cp3"}) {
			t.Errorf("joined in the order %q", w.joins)
		}
		// What is up is verified, and left as it is.
		before := len(w.lab.Changes())
		if err := w.lab.Up(t.Context(), bringup.StageProof); err != nil {
			t.Fatal(err)
		}
		if again := w.lab.Changes()[before:]; len(again) > 0 {
			t.Errorf("the second up changed %q", again)
		}
	})
}

// Killed before any change of a bring-up, the same command run again ends with a healthy lab, and never with a second cluster.
func TestUpKilledAtEveryChange(t *testing.T) {
	changes := 0
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		if err := w.lab.Up(t.Context(), bringup.StageProof); err != nil {
			t.Fatal(err)
		}
		changes = w.changes
	})
	if changes < 30 {
		t.Fatalf("a bring-up has %d changes", changes)
	}
	for at := 1; at <= changes; at += pace {
		inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
			w.killAt(at)
			if err := w.lab.Up(w.ctx, bringup.StageProof); err == nil && at < changes {
				t.Errorf("change %d of %d was refused, and up did not notice", at, changes)
			}
			last := w.calls[len(w.calls)-1]
			w.reborn()
			if err := w.lab.Up(t.Context(), bringup.StageProof); err != nil {
				t.Errorf("killed before change %d (%s): %v", at, last, err)
				return
			}
			w.wantHealthy()
		})
	}
}
