package reader

import (
	"testing"

	"k8slab/lab/symptom"
)

func TestEveryCauseHasPhrases(t *testing.T) {
	for _, s := range symptom.All() {
		if s.ID != symptom.Healthy && len(patternsOf(s.ID)) == 0 {
			t.Errorf("%s: nothing shows it", s.ID)
		}
	}
}

// TestPhrasesAreParticular guards against phrases so short that any text has them: normalized text has no spaces to hold words apart.
func TestPhrasesAreParticular(t *testing.T) {
	for _, k := range words().all {
		total := 0
		for _, part := range k.parts {
			total += len(part)
		}
		if total < 5 {
			t.Errorf("%s: phrase %q is too short", k.id, k.pattern.phrase)
		}
	}
}
