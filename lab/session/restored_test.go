package session_test

import (
	"testing"

	"k8slab/lab/labtest"
	"k8slab/lab/session"
)

func TestRestoredFirst(t *testing.T) {
	s := labtest.Session(t, labtest.Three)
	for file, want := range map[string]string{"": "cp1, cp2, cp3", "cp1": "cp1, cp2, cp3", "cp2": "cp2, cp1, cp3", "cp3\n": "cp3, cp1, cp2", "gone": "cp1, cp2, cp3"} {
		if file != "" {
			if err := s.Write(session.RestoredFile, []byte(file)); err != nil {
				t.Fatal(err)
			}
		}
		if got := session.NamesOf(s.RestoredFirst(s.Cluster.ControlPlanes())); got != want {
			t.Errorf("%q: got %s, want %s", file, got, want)
		}
		if err := s.ForgetRestore(); err != nil {
			t.Fatal(err)
		}
	}
}
